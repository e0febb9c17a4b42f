# Results for readers, from the tables: figures, one worklog page per family, and MLflow runs.


# One job draws all figures of a family; figures with unchanged numbers and code are kept.
rule plot_family:
    input:
        tables=files.tables("floors", "claims", "ceilings"),
        analysis=rules.analyse.output,
        accesses=files.accesses_analysed,
    output:
        report(
            update(directory("results/figures/{family}")),
            patterns=[parameters.reported()],
            caption="../report/figure.rst",
            category="Figures",
            subcategory="{family}",
            labels=parameters.report_labels,
        ),
    log:
        "results/logs/plot/{family}.log",
    params:
        version=stages.FIGURES.version,
        figures=parameters.figures,
        settings=plain(plan.settings.figures),
        captions=paths.shown(paths.WORKFLOW / "report"),
        accesses=parameters.accesses_listed,
    script:
        "../scripts/publish/plot_family.py"


rule plot_savings:
    input:
        analysis=rules.analyse.output,
    output:
        directory("results/mechanisms"),
    log:
        "results/logs/plot_savings.log",
    params:
        version=stages.SAVINGS.version,
        settings=plain(plan.settings.figures),
    script:
        "../scripts/publish/plot_savings.py"


rule figures:
    input:
        files.figures(),
        rules.plot_savings.output,


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
        tables=files.tables(),
        floors=rules.judge_floors.output.parquet,
        claims=rules.judge_claims.output.parquet,
        analysis=rules.analyse.output,
        chips=files.chips_on_pages,
        duels=files.duels_on_pages,
        figures="results/figures/{family}",
        library=rules.bundle_charts.output[0],
        sources=files.page_sources,
        campaign=files.campaign(),
    output:
        # Not part of the report: a browser opens no address of more than 2 MB, which is how it would hold the page.
        html="results/worklog/{family}.html",
        md="results/worklog/{family}.md",
        latex=directory("results/latex/{family}"),
    log:
        "results/logs/worklog/{family}.log",
    params:
        version=stages.PAGE.version,
        chips=parameters.chips_listed,
        duels=parameters.duels_listed,
        plan=plan.decisions(),
    script:
        "../scripts/publish/write_worklog.py"


rule worklog:
    input:
        expand("results/worklog/{family}.html", family=plan.chosen),


rule write_site:
    input:
        tables=files.tables(),
        floors=rules.judge_floors.output.parquet,
        claims=rules.judge_claims.output.parquet,
        analysis=rules.analyse.output,
        chips=files.chips_on_pages,
        duels=files.duels_on_pages,
        figures=files.figures(),
        library=rules.bundle_charts.output[0],
        sources=files.all_page_sources(),
        campaign=files.campaign(),
    output:
        directory("results/site"),
    log:
        "results/logs/site.log",
    params:
        version=stages.SITE.version,
        chips=parameters.chips_listed,
        duels=parameters.duels_listed,
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
        campaign=files.campaign(),
    output:
        record="results/track/mlflow.json",
        runs="results/track/runs.html",
    log:
        "results/logs/track.log",
    # Starts before the figures: both take about equally long and run in parallel.
    priority: 1
    # One process writes to the store, which takes two thirds of the time; on many cores, others prepare what it writes.
    threads: max(1, min(3, (workflow.resource_settings.cores or 1) // 4))
    params:
        version=stages.TRACK.version,
        plan=plan.decisions(),
        uri=plan.settings.track.uri,
        destination=parameters.destination,
    script:
        "../scripts/publish/log_mlflow.py"


rule log_figures:
    input:
        logged=rules.log_mlflow.output.record,
        figures=files.figures(),
    output:
        "results/track/figures.json",
    log:
        "results/logs/track_figures.log",
    params:
        version=stages.ATTACH.version,
        uri=plan.settings.track.uri,
    script:
        "../scripts/publish/log_figures.py"


rule track:
    input:
        rules.log_mlflow.output,
        rules.log_figures.output,
