# Results for readers, from the tables: figures, one worklog page per family, and MLflow runs.


# One job draws all figures of a family; figures with unchanged numbers and code are kept.
rule plot_family:
    input:
        tables=plan.tables("floors", "claims"),
        analysis=rules.analyse.output,
        code=code("plot"),
    output:
        report(
            update(directory("results/figures/{family}")),
            patterns=[plan.reported_figures()],
            caption="../report/figure.rst",
            category="Figures",
            subcategory="{family}",
            labels=plan.report_labels,
        ),
    log:
        "results/logs/plot/{family}.log",
    params:
        figures=plan.family_figures,
        settings=plain(plan.settings.figures),
        captions=paths.shown(paths.WORKFLOW / "report"),
    script:
        "../scripts/publish/plot_family.py"


rule figures:
    input:
        plan.figures(),


rule bundle_charts:
    output:
        "results/assets/charts.js",
    log:
        "results/logs/bundle_charts.log",
    params:
        version=version("vl-convert-python"),
    script:
        "../scripts/publish/bundle_charts.py"


rule write_worklog:
    input:
        tables=plan.tables(),
        floors=rules.judge_floors.output.parquet,
        claims=rules.judge_claims.output.parquet,
        analysis=rules.analyse.output,
        figures="results/figures/{family}",
        library=rules.bundle_charts.output[0],
        sources=plan.page_sources,
        campaign=plan.campaign(),
        code=code("worklog"),
    output:
        # Not part of the report: a browser opens no address of more than 2 MB, which is how it would hold the page.
        html="results/worklog/{family}.html",
        md="results/worklog/{family}.md",
        latex=directory("results/latex/{family}"),
    log:
        "results/logs/worklog/{family}.log",
    params:
        plan=plan.decisions(),
    script:
        "../scripts/publish/write_worklog.py"


rule worklog:
    input:
        expand("results/worklog/{family}.html", family=plan.chosen),


rule write_site:
    input:
        tables=plan.tables(),
        floors=rules.judge_floors.output.parquet,
        claims=rules.judge_claims.output.parquet,
        analysis=rules.analyse.output,
        figures=plan.figures(),
        library=rules.bundle_charts.output[0],
        sources=plan.all_page_sources(),
        campaign=plan.campaign(),
        code=code("worklog"),
    output:
        directory("results/site"),
    log:
        "results/logs/site.log",
    params:
        plan=plan.decisions(),
    script:
        "../scripts/publish/write_site.py"


rule site:
    input:
        rules.write_site.output,


rule log_mlflow:
    input:
        tables=rules.make_tables.output.parquet,
        floors=rules.judge_floors.output.parquet,
        claims=rules.judge_claims.output.parquet,
        analysis=rules.analyse.output,
        campaign=plan.campaign(),
        code=code("track"),
    output:
        record="results/track/mlflow.json",
        runs="results/track/runs.html",
    log:
        "results/logs/track.log",
    # Starts before the figures: both take about equally long and run in parallel.
    priority: 1
    params:
        plan=plan.decisions(),
        uri=plan.settings.track.uri,
        destination=plan.destination,
    script:
        "../scripts/publish/log_mlflow.py"


rule log_figures:
    input:
        logged=rules.log_mlflow.output.record,
        figures=plan.figures(),
        code=code("track"),
    output:
        "results/track/figures.json",
    log:
        "results/logs/track_figures.log",
    params:
        uri=plan.settings.track.uri,
    script:
        "../scripts/publish/log_figures.py"


rule track:
    input:
        rules.log_mlflow.output,
        rules.log_figures.output,
