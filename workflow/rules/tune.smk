# The best setting of each variant with `tune` on this GPU: not part of the campaign, `snakemake tune` asks for it.


rule tune_variant:
    input:
        sources=plan.sources,
        reference=plan.reference,
        timer=plan.timer(),
        campaign="results/campaign/{gpu}.json",
        code=plan.code("tune"),
    output:
        record="results/tune/{gpu}/{family}/{variant}.json",
        csv="results/tune/{gpu}/{family}/{variant}.csv",
        parquet="results/tune/{gpu}/{family}/{variant}.parquet",
    log:
        "results/logs/tune/{gpu}/{family}/{variant}.log",
    # All cores: they compile in turn with the measuring, and nothing runs beside the clock.
    threads: workflow.cores
    resources:
        gpu=1,
    params:
        family_file=plan.family_file,
        contract=plan.tune_contract,
        arch=plan.arch,
        settings=plan.settings["tune"],
        time=plan.settings["time"],
    script:
        "../scripts/tune_variant.py"


rule plot_tuning:
    input:
        record="results/tune/{gpu}/{family}/{variant}.json",
        code=plan.code("plot_tuning"),
    output:
        png="results/tune/{gpu}/{family}/{variant}.png",
        svg="results/tune/{gpu}/{family}/{variant}.svg",
    log:
        "results/logs/tune/{gpu}/{family}/{variant}.png.log",
    script:
        "../scripts/plot_tuning.py"


rule tune:
    input:
        plan.tuned(),
