# MLflow: the runs when all results are safe on disk, while the figures are drawn; then the figures.


rule log_mlflow:
    input:
        tables=rules.make_tables.output.parquet,
        claims=rules.judge_claims.output.parquet,
        campaign=plan.campaign(),
        code=plan.code("track"),
    output:
        "results/track/mlflow.json",
    log:
        "results/logs/track.log",
    # Before the figures, which take as long together.
    priority: 1
    params:
        uri=plan.tracking_uri(),
        store=plan.tracking_store(),
    script:
        "../scripts/log_mlflow.py"


rule log_figures:
    input:
        logged=rules.log_mlflow.output[0],
        figures=plan.figures(),
        code=plan.code("track"),
    output:
        "results/track/figures.json",
    log:
        "results/logs/track_figures.log",
    params:
        uri=plan.tracking_uri(),
        store=plan.tracking_store(),
    script:
        "../scripts/log_figures.py"


rule track:
    input:
        rules.log_mlflow.output,
        rules.log_figures.output,
