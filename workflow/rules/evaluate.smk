# Metrics from the profilers' reports, tables of all records, the floor of each case, and verdicts on claims.


rule extract_family:
    input:
        ncu="results/profile/{gpu}/{family}.ncu.json",
        nsys="results/profile/{gpu}/{family}.nsys.json",
        sources=plan.family_sources,
        code=plan.code("extract"),
    output:
        update("results/extract/{gpu}/{family}.json"),
    log:
        "results/logs/extract/{gpu}/{family}.log",
    params:
        job=plan.extract_job,
    script:
        "../scripts/evaluate/extract_family.py"


rule extract:
    input:
        plan.files("extract"),
    output:
        touch("results/extract/.complete"),


rule make_tables:
    input:
        build=plan.files("build"),
        check=plan.files("check"),
        time=plan.files("time"),
        profile=rules.profile.input,
        extract=plan.files("extract"),
        campaign=plan.campaign(),
        gpus=plan.gpu_files(),
        code=plan.code("tables"),
    output:
        parquet=expand("results/tables/{table}.parquet", table=plan.tables()),
        csv=expand("results/tables/{table}.csv", table=[*plan.tables(), "columns"]),
    log:
        "results/logs/tables.log",
    params:
        plan=plan.decisions(),
        contract=plan.table_contract(),
        timelines=plan.timelines_state,
    script:
        "../scripts/evaluate/make_tables.py"


rule judge_floors:
    input:
        time=plan.files("time"),
        campaign=plan.campaign(),
        code=plan.code("floors"),
    output:
        parquet="results/tables/floors.parquet",
        csv="results/tables/floors.csv",
    log:
        "results/logs/floors.log",
    params:
        plan=plan.decisions(),
        rounds=judging.rounds_state,
    script:
        "../scripts/evaluate/judge_floors.py"


rule judge_claims:
    input:
        tables=rules.make_tables.output.parquet,
        floors=rules.judge_floors.output.parquet,
        code=plan.code("claims"),
    output:
        parquet="results/tables/claims.parquet",
        csv="results/tables/claims.csv",
    log:
        "results/logs/claims.log",
    params:
        plan=plan.decisions(),
        contract=plan.table_contract(),
    script:
        "../scripts/evaluate/judge_claims.py"


rule tables:
    input:
        rules.make_tables.output,
        rules.judge_floors.output,
        rules.judge_claims.output,
