# The result of the run in a few rows, which every run shows at its end, and the page to open.


rule summarize:
    input:
        tables=tables(*plan.tables()),
        floors=rules.judge_floors.output.parquet,
        campaign=each(Plan.campaign),
        order=plan.order_files(),
        code=plan.code("summary"),
    output:
        # Kept until it is made anew: the next summary says what moved since.
        rows=update(results("summary.json")),
        md=results("summary.md"),
        html=results("index.html"),
    log:
        results("logs/summary.log"),
    params:
        plan=each(Plan.decisions),
        figures=plan.drawn,
        sanitized=each(Plan.sanitized_state),
    script:
        "../scripts/summary/summarize.py"


# With `strict` these fail, and so run again each time, until all variants are ok.
rule strict:
    input:
        rules.summarize.output.rows,
    output:
        touch(results(".strict")),
    log:
        results("logs/strict.log"),
    params:
        plan=each(Plan.decisions),
    script:
        "../scripts/summary/be_strict.py"


rule strict_build:
    input:
        all_of(Plan.compiled),
    output:
        touch("results/build/.strict"),
    log:
        "results/logs/strict_build.log",
    params:
        plan=plan.decisions(),
    script:
        "../scripts/summary/be_strict.py"
