# Metrics from the profilers' reports, tables of all records, the floor of each case, verdicts on claims, and the result of
# the run in a few rows, which every run shows at its end.


rule extract_family:
    input:
        ncu="results/profile/{gpu}/{family}.ncu.json",
        nsys="results/profile/{gpu}/{family}.nsys.json",
        sources=files.family_sources,
    output:
        update("results/extract/{gpu}/{family}.json"),
    log:
        "results/logs/extract/{gpu}/{family}.log",
    params:
        version=stages.EXTRACT.version,
        job=parameters.extract,
    script:
        "../scripts/evaluate/extract_family.py"


rule extract:
    input:
        files.record_files(stages.EXTRACT),
    output:
        touch("results/extract/.complete"),


rule make_tables:
    input:
        build=files.builds_of_all(),
        check=files.record_files(stages.CHECK),
        time=files.record_files(stages.TIME),
        profile=files.record_files(stages.NCU, stages.NSYS),
        extract=files.record_files(stages.EXTRACT),
        campaign=files.campaign(),
        gpus=files.gpus(),
    output:
        parquet=files.tables(),
        csv=files.tables("columns", suffix="csv"),
    log:
        "results/logs/tables.log",
    params:
        version=stages.TABLES.version,
        plan=plan.decisions(),
        contract=parameters.tables(),
        timelines=parameters.timelines,
    script:
        "../scripts/evaluate/make_tables.py"


rule judge_floors:
    input:
        time=files.record_files(stages.TIME),
        campaign=files.campaign(),
    output:
        parquet="results/tables/floors.parquet",
        csv="results/tables/floors.csv",
    log:
        "results/logs/floors.log",
    params:
        version=stages.FLOORS.version,
        plan=plan.decisions(),
        rounds=judging.rounds_state,
    script:
        "../scripts/evaluate/judge_floors.py"


rule judge_claims:
    input:
        tables=rules.make_tables.output.parquet,
        floors=rules.judge_floors.output.parquet,
    output:
        parquet="results/tables/claims.parquet",
        csv="results/tables/claims.csv",
        answers="results/tables/answers.parquet",
        ceilings="results/tables/ceilings.parquet",
    log:
        "results/logs/claims.log",
    params:
        version=stages.CLAIMS.version,
        plan=plan.decisions(),
        contract=parameters.tables(),
    script:
        "../scripts/evaluate/judge_claims.py"


rule analyse:
    input:
        tables=rules.make_tables.output.parquet,
        floors=rules.judge_floors.output.parquet,
        ceilings=rules.judge_claims.output.ceilings,
        recorded_ceilings=files.recorded_ceilings(),
        accesses=files.accesses_analysed,
        sources=files.all_page_sources(),
    output:
        files.concluded(),
    log:
        "results/logs/analyse.log",
    # Families are analysed side by side; the largest takes a fifth of the time of all, so that more gain little.
    threads: 8
    params:
        version=stages.ANALYSIS.version,
        plan=plan.decisions(),
        accesses=parameters.accesses_listed,
    script:
        "../scripts/evaluate/analyse.py"


rule summarize:
    input:
        tables=files.tables(),
        floors=rules.judge_floors.output.parquet,
        analysis=rules.analyse.output,
        campaign=files.campaign(),
        order=files.order(),
    output:
        # Kept until it is made anew: the next summary says what moved since.
        rows=update("results/summary.json"),
        md="results/summary.md",
        html="results/index.html",
    log:
        "results/logs/summary.log",
    params:
        version=stages.SUMMARY.version,
        plan=plan.decisions(),
        figures=plan.drawn,
        sanitized=parameters.sanitized,
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
        files.compiled(),
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
