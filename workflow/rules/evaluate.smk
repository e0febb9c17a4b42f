# Metrics from the profilers' reports, tables of all records, the floor of each case, and verdicts on claims.


rule extract_family:
    input:
        ncu=results("profile/{gpu}/{family}.ncu.json"),
        nsys=results("profile/{gpu}/{family}.nsys.json"),
        sources=each(Plan.family_sources),
        code=plan.code("extract"),
    output:
        update(results("extract/{gpu}/{family}.json")),
    log:
        results("logs/extract/{gpu}/{family}.log"),
    params:
        job=each(Plan.extract_job),
    script:
        "../scripts/evaluate/extract_family.py"


rule extract:
    input:
        all_of(Plan.files, "extract"),
    output:
        touch("results/extract/.complete"),


rule make_tables:
    input:
        build=each(Plan.files, "build"),
        check=each(Plan.files, "check"),
        time=each(Plan.files, "time"),
        profile=each(Plan.profiles),
        extract=each(Plan.files, "extract"),
        campaign=each(Plan.campaign),
        gpus=each(Plan.gpu_files),
        code=plan.code("tables"),
    output:
        parquet=tables(*plan.tables()),
        csv=tables(*plan.tables(), "columns", suffix="csv"),
    log:
        results("logs/tables.log"),
    params:
        plan=each(Plan.decisions),
        contract=each(Plan.table_contract),
        timelines=each(Plan.timelines_state),
    script:
        "../scripts/evaluate/make_tables.py"


rule judge_floors:
    input:
        time=each(Plan.files, "time"),
        campaign=each(Plan.campaign),
        code=plan.code("floors"),
    output:
        parquet=results("tables/floors.parquet"),
        csv=results("tables/floors.csv"),
    log:
        results("logs/floors.log"),
    params:
        plan=each(Plan.decisions),
        rounds=each(Judging.rounds_state),
    script:
        "../scripts/evaluate/judge_floors.py"


rule judge_claims:
    input:
        tables=rules.make_tables.output.parquet,
        floors=rules.judge_floors.output.parquet,
        code=plan.code("claims"),
    output:
        parquet=results("tables/claims.parquet"),
        csv=results("tables/claims.csv"),
    log:
        results("logs/claims.log"),
    params:
        plan=each(Plan.decisions),
        contract=each(Plan.table_contract),
    script:
        "../scripts/evaluate/judge_claims.py"


rule tables:
    input:
        everywhere(rules.make_tables.output),
        everywhere(rules.judge_floors.output),
        everywhere(rules.judge_claims.output),
        plans.joined(),
