# The ladder told step by step, one page a family, from the tables, figures and sources.


rule write_worklog:
    input:
        tables=expand("results/tables/{table}.parquet", table=plan.tables()),
        figures=plan.family_figures,
        sources=plan.family_sources,
        campaign=plan.campaign(),
        code=plan.code("worklog"),
    output:
        html=report(
            "results/worklog/{family}.html",
            category="Worklog",
            labels={"family": "{family}"},
        ),
        md="results/worklog/{family}.md",
        tex="results/worklog/{family}.tex",
    log:
        "results/logs/worklog/{family}.log",
    script:
        "../scripts/write_worklog.py"


rule worklog:
    input:
        expand("results/worklog/{family}.html", family=plan.chosen),
