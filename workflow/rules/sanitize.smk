# compute-sanitizer over all variants, only on request: `snakemake sanitize`.


rule sanitize_family:
    input:
        builds=each(Plan.builds),
        libraries=each(Plan.libraries),
        campaign=results("campaign/{gpu}.json"),
        reference=each(Plan.reference),
        code=plan.code("sanitize"),
    output:
        update(results("sanitize/{gpu}/{family}.json")),
    log:
        results("logs/sanitize/{gpu}/{family}.log"),
    # All of the resource: two sanitizers in parallel, one of them waiting for the GPU, have been observed to hang.
    resources:
        gpu=1,
        gpu_model=each(Plan.gres),
        measuring=plan.boards.measuring,
    params:
        job=each(Plan.sanitize_job),
    script:
        "../scripts/sanitize/sanitize_family.py"


rule list_findings:
    input:
        records=each(Plan.sanitized),
        campaign=each(Plan.campaign),
        code=plan.code("sanitize"),
    output:
        parquet=results("tables/sanitize.parquet"),
        csv=results("tables/sanitize.csv"),
    log:
        results("logs/findings.log"),
    params:
        plan=each(Plan.decisions),
        contract=each(Plan.table_contract),
    script:
        "../scripts/sanitize/list_findings.py"


rule sanitize:
    input:
        everywhere(rules.list_findings.output),
