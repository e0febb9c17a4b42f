# Duels of the steps that the campaign's times leave open, only on request: `snakemake duels`.


rule duel_steps:
    input:
        builds=files.builds,
        libraries=files.libraries,
        reference=files.reference,
        steps="results/tables/steps.parquet",
        campaign="results/campaign/{gpu}.json",
    output:
        update("results/duels/{gpu}/{family}/record.json"),
    log:
        "results/logs/duels/{gpu}/{family}.log",
    # As for timing: nothing else computes while kernels are timed.
    threads: parameters.timing_threads(workflow.resource_settings.cores)
    resources:
        **plan.boards.slots(),
        gpu=1,
        gpu_model=parameters.gres,
    params:
        version=stages.DUELS.version,
        job=parameters.duels,
    script:
        "../scripts/duels/duel_steps.py"


rule list_duels:
    input:
        records=files.duels,
        campaign=files.campaign(),
    output:
        parquet="results/tables/duels.parquet",
        csv="results/tables/duels.csv",
    log:
        "results/logs/list_duels.log",
    params:
        version=stages.LIST_DUELS.version,
        plan=plan.decisions(),
    script:
        "../scripts/duels/list_duels.py"


rule duels:
    input:
        rules.list_duels.output,
