# Figures from the tables alone: one file in scripts/figures/ is one figure.


rule plot_figure:
    input:
        tables=expand(
            "results/tables/{table}.parquet", table=[*plan.tables(), "claims"]
        ),
        figure="workflow/scripts/figures/{figure}.py",
        code=plan.code("plot"),
    output:
        png=report(
            "results/figures/{family}/{figure}.png",
            caption="../report/figure.rst",
            category="Figures",
            subcategory="{family}",
            labels={"figure": "{figure}"},
        ),
        svg="results/figures/{family}/{figure}.svg",
        csv="results/figures/{family}/{figure}.csv",
    log:
        "results/logs/plot/{family}/{figure}.log",
    script:
        "../scripts/plot_figure.py"


rule figures:
    input:
        plan.figures(),
