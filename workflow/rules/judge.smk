# Verdicts: the same code compared with itself (A/A), two campaigns, all campaigns over time, and kernels whose true
# values are known (oracle).


rule time_round:
    input:
        builds=files.builds,
        libraries=files.libraries,
        check="results/check/{gpu}/{family}.json",
        timer=files.timer(),
        campaign="results/campaign/{gpu}.json",
        before=judging.before,
    output:
        "results/aa/round{round}/time/{gpu}/{family}.json",
    log:
        "results/logs/aa/round{round}/{gpu}/{family}.log",
    wildcard_constraints:
        round=r"[1-9]\d*",
    threads: parameters.timing_threads(workflow.resource_settings.cores)
    resources:
        **plan.boards.slots(),
        gpu=1,
        gpu_model=parameters.gres,
    params:
        version=stages.ROUND.version,
        job=parameters.time,
    script:
        "../scripts/judge/time_round.py"


rule judge_rounds:
    input:
        rounds=judging.rounds,
    output:
        verdicts="results/aa/verdicts.csv",
        floors="results/aa/floors.csv",
        summary="results/aa/summary.md",
    log:
        "results/logs/aa/judge.log",
    params:
        version=stages.ROUNDS.version,
        plan=plan.decisions(),
    script:
        "../scripts/judge/judge_rounds.py"


rule aa:
    input:
        rules.judge_rounds.output,


rule compare_campaigns:
    input:
        live=judging.measured_first,
    output:
        json="results/compare/verdicts.json",
        csv="results/compare/verdicts.csv",
        markdown="results/compare/verdicts.md",
        png=report(
            "results/compare/ratios.png",
            caption="../report/ratios.rst",
            category="Verdicts",
        ),
        svg="results/compare/ratios.svg",
    log:
        "results/logs/compare_campaigns.log",
    params:
        version=stages.COMPARISON.version,
        plan=plan.decisions(),
        names=judging.names(),
        state=judging.state,
        uri=plan.settings.track.uri,
    script:
        "../scripts/judge/compare_campaigns.py"


# A separate rule, so that a regression fails the run but the files of the comparison are kept.
rule compare:
    input:
        rules.compare_campaigns.output.json,
    log:
        "results/logs/compare.log",
    script:
        "../scripts/judge/compare.py"


# One job for all families: it reads each campaign once.
rule plot_history:
    output:
        png=report(
            expand("results/history/{family}.png", family=plan.chosen),
            caption="../report/history.rst",
            category="History",
        ),
        svg=expand("results/history/{family}.svg", family=plan.chosen),
        csv=expand("results/history/{family}.csv", family=plan.chosen),
    log:
        "results/logs/history.log",
    params:
        version=stages.HISTORY.version,
        plan=plan.decisions(),
        campaigns=judging.history,
        state=judging.history_state,
    script:
        "../scripts/judge/plot_history.py"


rule history:
    input:
        rules.plot_history.output.png,


rule judge_oracle:
    input:
        build=oracle.builds_of_all(),
        check=oracle.record_files(stages.CHECK),
        time=oracle.record_files(stages.TIME),
        extract=oracle.record_files(stages.EXTRACT),
        campaign=files.campaign(),
        gpus=files.gpus(),
    output:
        csv="results/tables/oracle.csv",
        parquet="results/tables/oracle.parquet",
    log:
        "results/logs/judge_oracle.log",
    params:
        version=stages.ORACLE.version,
        plan=plan.decisions(),
        contract=Parameters(oracle).tables(),
    script:
        "../scripts/judge/judge_oracle.py"


rule oracle:
    input:
        rules.judge_oracle.output.csv,
    log:
        "results/logs/oracle.log",
    script:
        "../scripts/judge/oracle.py"


rule audit:
    input:
        pages=expand("results/worklog/{family}.html", family=plan.chosen),
        tables=rules.tables.input,
    log:
        "results/logs/audit.log",
    script:
        "../scripts/judge/audit.py"
