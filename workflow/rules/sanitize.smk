# compute-sanitizer over every variant, on request: `snakemake sanitize`.


rule sanitize_family:
    input:
        builds=plan.builds,
        libraries=plan.libraries,
        campaign="results/campaign/{gpu}.json",
        reference=plan.reference,
        code=plan.code("sanitize"),
    output:
        update("results/sanitize/{gpu}/{family}.json"),
    log:
        "results/logs/sanitize/{gpu}/{family}.log",
    # All of it: two sanitizers side by side, one of which waits for the GPU, have been seen to hang.
    resources:
        measuring=2,
    params:
        job=plan.sanitize_job,
    script:
        "../scripts/sanitize/sanitize_family.py"


rule list_findings:
    input:
        plan=ancient("results/plan.json"),
        records=plan.sanitized(),
        campaign=plan.campaign(),
        code=plan.code("sanitize"),
    output:
        parquet="results/tables/sanitize.parquet",
        csv="results/tables/sanitize.csv",
    log:
        "results/logs/findings.log",
    params:
        contract=plan.table_contract(),
    script:
        "../scripts/sanitize/list_findings.py"


rule sanitize:
    input:
        rules.list_findings.output,
