# Builds for chips that are not here, only on request: `snakemake chips`. They need nvcc, and no GPU.


rule build_for_chips:
    input:
        sources=files.family_sources,
    output:
        update("results/chips/{arch}/{family}/record.json"),
    log:
        "results/logs/chips/{arch}/{family}.log",
    params:
        version=stages.FOR_CHIPS.version,
        job=parameters.chips,
    script:
        "../scripts/chips/build_for_chips.py"


rule list_chips:
    input:
        records=files.chips,
        tables=files.tables(),
        campaign=files.campaign(),
    output:
        parquet="results/tables/chips.parquet",
        csv="results/tables/chips.csv",
    log:
        "results/logs/chips.log",
    params:
        version=stages.CHIPS.version,
        plan=plan.decisions(),
        records=parameters.chip_records,
    script:
        "../scripts/chips/list_chips.py"


rule chips:
    input:
        rules.list_chips.output,
