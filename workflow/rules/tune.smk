# Searches the best parameters of each variant with a key `tune`, only on request: `snakemake tune`.


rule tune_variant:
    input:
        sources=files.sources,
        reference=files.reference,
        timer=files.timer(),
        campaign="results/campaign/{gpu}.json",
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
        gpu_model=parameters.gres,
    params:
        version=stages.TUNE.version,
        job=parameters.tune,
    script:
        "../scripts/tune/tune_variant.py"


rule plot_tuning:
    input:
        record="results/tune/{gpu}/{family}/{variant}.json",
    output:
        png="results/tune/{gpu}/{family}/{variant}.png",
        svg="results/tune/{gpu}/{family}/{variant}.svg",
    log:
        "results/logs/tune/{gpu}/{family}/{variant}.png.log",
    params:
        version=stages.TUNED.version,
    script:
        "../scripts/tune/plot_tuning.py"


rule tune:
    input:
        files.tuned(),
