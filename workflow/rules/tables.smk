# All records of all variants as tidy tables, and what they say of the claims.


rule make_tables:
    input:
        build=plan.files("build"),
        check=plan.files("check"),
        time=plan.files("time"),
        extract=plan.files("extract"),
        campaign=plan.campaign(),
        gpus="config/gpus.yaml",
        code=plan.code("tables"),
    output:
        parquet=expand("results/tables/{table}.parquet", table=plan.tables()),
        csv=expand("results/tables/{table}.csv", table=[*plan.tables(), "columns"]),
    log:
        "results/logs/tables.log",
    params:
        contract=plan.table_contract(),
    script:
        "../scripts/make_tables.py"


rule judge_claims:
    input:
        tables=rules.make_tables.output.parquet,
        code=plan.code("claims"),
    output:
        parquet="results/tables/claims.parquet",
        csv="results/tables/claims.csv",
    log:
        "results/logs/claims.log",
    params:
        contract=plan.table_contract(),
    script:
        "../scripts/judge_claims.py"


rule tables:
    input:
        rules.make_tables.output,
        rules.judge_claims.output,
