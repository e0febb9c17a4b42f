# MLflow: one job, when all results are safe on disk.


rule log_mlflow:
    input:
        tables=rules.make_tables.output.parquet,
        claims=rules.judge_claims.output.parquet,
        figures=plan.figures(),
        campaign=plan.campaign(),
        code=plan.code("track"),
    output:
        "results/track/mlflow.json",
    log:
        "results/logs/track.log",
    params:
        uri=plan.tracking_uri(),
        store=plan.tracking_store(),
    script:
        "../scripts/log_mlflow.py"


rule track:
    input:
        rules.log_mlflow.output,
