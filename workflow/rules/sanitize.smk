# compute-sanitizer over all variants, only on request: `snakemake sanitize`.


rule sanitize_family:
    input:
        builds=plan.builds,
        libraries=plan.libraries,
        campaign="results/campaign/{gpu}.json",
        reference=plan.reference,
        code=code("sanitize"),
    output:
        update("results/sanitize/{gpu}/{family}.json"),
    log:
        "results/logs/sanitize/{gpu}/{family}.log",
    # All of the resource: two sanitizers in parallel, one of them waiting for the GPU, have been observed to hang.
    resources:
        gpu=1,
        gpu_model=plan.gres,
        measuring=plan.boards.measuring,
    params:
        job=plan.sanitize_job,
    script:
        "../scripts/sanitize/sanitize_family.py"


rule list_findings:
    input:
        records=plan.sanitized(),
        campaign=plan.campaign(),
        code=code("sanitize"),
    output:
        parquet="results/tables/sanitize.parquet",
        csv="results/tables/sanitize.csv",
    log:
        "results/logs/findings.log",
    params:
        plan=plan.decisions(),
        records=plan.sanitized_records(),
        contract=plan.table_contract(),
    script:
        "../scripts/sanitize/list_findings.py"


rule sanitize:
    input:
        rules.list_findings.output,
