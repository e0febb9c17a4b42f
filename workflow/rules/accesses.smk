# The addresses of memory accesses, only on request: `snakemake accesses`. No counters are needed.


rule build_tracer:
    input:
        sources=files.tracer_sources(),
    output:
        "results/accesses/build/{arch}/tracer.so",
    log:
        "results/logs/accesses/build/{arch}/tracer.log",
    params:
        version=stages.TRACER.version,
    script:
        "../scripts/accesses/build_tracer.py"


rule trace_accesses:
    input:
        builds=files.builds,
        libraries=files.libraries,
        reference=files.reference,
        check="results/check/{gpu}/{family}.json",
        tracer=files.tracer(),
        campaign="results/campaign/{gpu}.json",
    output:
        update("results/accesses/{gpu}/{family}.json"),
    log:
        "results/logs/accesses/{gpu}/{family}.log",
    priority: plan.boards.priority
    retries: parameters.retries
    resources:
        **plan.boards.slots(),
        gpu=1,
        gpu_model=parameters.gres,
    params:
        version=stages.ACCESSES.version,
        job=parameters.accesses,
    script:
        "../scripts/accesses/trace_accesses.py"


rule list_accesses:
    input:
        records=files.accesses(),
        campaign=files.campaign(),
    output:
        parquet="results/tables/accesses.parquet",
        csv="results/tables/accesses.csv",
        kernels="results/tables/traced_kernels.parquet",
        kernels_csv="results/tables/traced_kernels.csv",
        pictures=expand(
            "results/tables/{table}.parquet",
            table=["access_lanes", "access_owners", "access_tiles"],
        ),
    log:
        "results/logs/list_accesses.log",
    params:
        version=stages.LIST_ACCESSES.version,
        plan=plan.decisions(),
        contract=parameters.tables(),
    script:
        "../scripts/accesses/list_accesses.py"


rule accesses:
    input:
        rules.list_accesses.output,
