# Several GPUs side by side: all campaigns of the run in one set of tables, a figure per family, and a page.


rule join_tables:
    input:
        tables=everywhere(tables(*plan.tables(), "floors", "claims")),
        code=plan.code("worklog"),
    output:
        plans.joined(),
    log:
        "results/logs/join_tables.log",
    script:
        "../scripts/beside/join_tables.py"


rule plot_speeds:
    input:
        tables=rules.join_tables.output,
        code=plan.code("worklog"),
    output:
        png=report(
            "results/beside/{family}.png",
            caption="../report/speeds.rst",
            category="Figures",
            subcategory="GPUs side by side",
            labels={"figure": "{family}"},
        ),
        svg="results/beside/{family}.svg",
        csv="results/beside/{family}.csv",
    log:
        "results/logs/beside/{family}.log",
    params:
        gpus=plans.gpus,
    script:
        "../scripts/beside/plot_speeds.py"


rule write_beside:
    input:
        tables=rules.join_tables.output,
        figures=expand("results/beside/{family}.png", family=plan.chosen),
        code=plan.code("worklog"),
    output:
        "results/beside.html",
    log:
        "results/logs/beside.log",
    params:
        gpus=plans.gpus,
    script:
        "../scripts/beside/write_beside.py"


rule beside:
    input:
        rules.write_beside.output,
