# Every address of one launch of each variant, only on request: `snakemake accesses`.


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
