# All records of all variants as tidy tables.


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


rule tables:
    input:
        rules.make_tables.output,
