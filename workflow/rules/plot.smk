# Figures from the tables alone, one file in scripts/figures/ each; and the worklog, which tells the ladder with them.
# A job draws one figure for all families, since starting a process costs more than drawing.


for figure, families in plan.families_of_figures().items():

    rule:
        name:
            f"plot_figure_{figure}"
        input:
            tables=expand(
                "results/tables/{table}.parquet", table=[*plan.tables(), "claims"]
            ),
            figure=f"workflow/scripts/figures/{figure}.py",
            code=plan.code("plot"),
        output:
            png=[
                report(
                    f"results/figures/{family}/{figure}.png",
                    caption="../report/figure.rst",
                    category="Figures",
                    subcategory=family,
                    labels={"figure": figure},
                )
                for family in families
            ],
            svg=expand(f"results/figures/{{family}}/{figure}.svg", family=families),
            csv=expand(f"results/figures/{{family}}/{figure}.csv", family=families),
        log:
            f"results/logs/plot/{figure}.log",
        script:
            "../scripts/plot_figure.py"


rule figures:
    input:
        plan.figures(),


rule write_worklog:
    input:
        tables=expand("results/tables/{table}.parquet", table=plan.tables()),
        claims=rules.judge_claims.output.parquet,
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
