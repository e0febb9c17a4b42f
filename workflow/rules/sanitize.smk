# compute-sanitizer over all variants, only on request: `snakemake sanitize`.


rule sanitize_family:
    input:
        builds=files.builds,
        libraries=files.libraries,
        campaign="results/campaign/{gpu}.json",
        reference=files.reference,
    output:
        update("results/sanitize/{gpu}/{family}.json"),
    log:
        "results/logs/sanitize/{gpu}/{family}.log",
    # All of the resource: two sanitizers in parallel, one of them waiting for the GPU, have been observed to hang.
    resources:
        gpu=1,
        gpu_model=parameters.gres,
        measuring=plan.boards.measuring,
    params:
        version=stages.SANITIZE.version,
        job=parameters.sanitize,
    script:
        "../scripts/sanitize/sanitize_family.py"


rule list_findings:
    input:
        records=files.sanitized(),
        campaign=files.campaign(),
    output:
        parquet="results/tables/sanitize.parquet",
        csv="results/tables/sanitize.csv",
    log:
        "results/logs/findings.log",
    params:
        version=stages.FINDINGS.version,
        plan=plan.decisions(),
        records=files.sanitized_records(),
        contract=parameters.tables(),
    script:
        "../scripts/sanitize/list_findings.py"


rule sanitize:
    input:
        rules.list_findings.output,
