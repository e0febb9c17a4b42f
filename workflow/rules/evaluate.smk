# Metrics from the profilers' reports, tables of all records, the floor of each case, verdicts on claims, and the result of
# the run in a few rows, which every run shows at its end.


rule extract_family:
    input:
        ncu="results/profile/{gpu}/{family}.ncu.json",
        nsys="results/profile/{gpu}/{family}.nsys.json",
        sources=plan.family_sources,
        code=code("extract"),
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
        profile=plan.profiles(),
        extract=plan.files("extract"),
        campaign=plan.campaign(),
        gpus=plan.gpu_files(),
        code=code("tables"),
    output:
        parquet=plan.tables(),
        csv=plan.tables("columns", suffix="csv"),
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
        code=code("floors"),
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
        code=code("claims"),
    output:
        parquet="results/tables/claims.parquet",
        csv="results/tables/claims.csv",
        answers="results/tables/answers.parquet",
    log:
        "results/logs/claims.log",
    params:
        plan=plan.decisions(),
        contract=plan.table_contract(),
    script:
        "../scripts/evaluate/judge_claims.py"


rule analyse:
    input:
        tables=rules.make_tables.output.parquet,
        floors=rules.judge_floors.output.parquet,
        sources=plan.all_page_sources(),
        code=code("analysis"),
    output:
        plan.concluded(),
    log:
        "results/logs/analyse.log",
    params:
        plan=plan.decisions(),
    script:
        "../scripts/evaluate/analyse.py"


rule summarize:
    input:
        tables=plan.tables(),
        floors=rules.judge_floors.output.parquet,
        analysis=rules.analyse.output,
        campaign=plan.campaign(),
        order=plan.order_files(),
        code=code("summary"),
    output:
        # Kept until it is made anew: the next summary says what moved since.
        rows=update("results/summary.json"),
        md="results/summary.md",
        html="results/index.html",
    log:
        "results/logs/summary.log",
    params:
        plan=plan.decisions(),
        figures=plan.drawn,
        sanitized=plan.sanitized_state,
    script:
        "../scripts/evaluate/summarize.py"


# With `strict` these fail, and so run again each time, until all variants are ok.
rule strict:
    input:
        rules.summarize.output.rows,
    output:
        touch("results/.strict"),
    log:
        "results/logs/strict.log",
    script:
        "../scripts/evaluate/strict.py"


rule strict_build:
    input:
        plan.compiled(),
    output:
        touch("results/build/.strict"),
    log:
        "results/logs/strict_build.log",
    params:
        plan=plan.decisions(),
    script:
        "../scripts/evaluate/strict_build.py"


rule tables:
    input:
        rules.make_tables.output,
        rules.judge_floors.output,
        rules.judge_claims.output,
        rules.analyse.output,
        rules.summarize.output,
