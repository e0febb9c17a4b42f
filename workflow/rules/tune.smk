# Searches the best parameters of each variant with a key `tune`, only on request: `snakemake tune`.


rule tune_variant:
    input:
        sources=plan.sources,
        reference=plan.reference,
        timer=plan.timer(),
        campaign="results/campaign/{gpu}.json",
        code=code("tune"),
    output:
        record="results/tune/{gpu}/{family}/{variant}.json",
        csv="results/tune/{gpu}/{family}/{variant}.csv",
        parquet="results/tune/{gpu}/{family}/{variant}.parquet",
    log:
        "results/logs/tune/{gpu}/{family}/{variant}.log",
    # All cores: they compile between measurements, and nothing else computes while kernels are timed.
    threads: workflow.resource_settings.cores or 1
    resources:
        **plan.boards.slots(),
        gpu=1,
        gpu_model=plan.gres,
    params:
        job=plan.tune_job,
    script:
        "../scripts/tune/tune_variant.py"


rule plot_tuning:
    input:
        record="results/tune/{gpu}/{family}/{variant}.json",
        code=code("plot_tuning"),
    output:
        png="results/tune/{gpu}/{family}/{variant}.png",
        svg="results/tune/{gpu}/{family}/{variant}.svg",
    log:
        "results/logs/tune/{gpu}/{family}/{variant}.png.log",
    script:
        "../scripts/tune/plot_tuning.py"


rule tune:
    input:
        plan.tuned(),
