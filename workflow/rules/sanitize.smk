# compute-sanitizer over every variant, on request: `snakemake sanitize`.


rule sanitize_variant:
    input:
        build=plan.build_record,
        library=plan.library,
        campaign="results/campaign/{gpu}.json",
        reference=plan.reference,
        code=plan.code("sanitize"),
    output:
        "results/sanitize/{gpu}/{family}/{variant}.json",
    log:
        "results/logs/sanitize/{gpu}/{family}/{variant}.log",
    resources:
        gpu=1,
    params:
        family_file=plan.family_file,
        contract=plan.check_contract,
        settings=plan.settings["sanitize"],
    script:
        "../scripts/sanitize_variant.py"


rule list_findings:
    input:
        records=plan.files("sanitize"),
        campaign=plan.campaign(),
        code=plan.code("sanitize"),
    output:
        parquet="results/tables/sanitize.parquet",
        csv="results/tables/sanitize.csv",
    log:
        "results/logs/findings.log",
    script:
        "../scripts/list_findings.py"


rule sanitize:
    input:
        rules.list_findings.output,
