# compute-sanitizer over every variant, on request: `snakemake sanitize`.


for family in plan.measured():

    rule:
        name:
            f"sanitize_{family.name}"
        input:
            builds=family.builds(),
            libraries=family.libraries(),
            campaign=family.campaign(),
            reference=family.reference(),
            code=plan.code("sanitize"),
        output:
            update(family.records("sanitize")),
        log:
            family.log("sanitize"),
        # All of it: two sanitizers side by side, one of which waits for the GPU, have been seen to hang.
        resources:
            gpu=2,
        params:
            **family.job(),
            contract=family.check_contract(),
            settings=plan.settings["sanitize"],
        script:
            "../scripts/sanitize_family.py"


rule list_findings:
    input:
        records=plan.sanitized(),
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
