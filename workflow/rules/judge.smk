# Verdicts: the same code against itself (A/A), a campaign against another, and all of them over time.


# A process for each variant and round: what one process shares, such as where its memory lies, is part of the noise.
rule time_round:
    input:
        build=plan.build_record,
        library=plan.library,
        check="results/check/{gpu}/{family}/{variant}.json",
        timer=plan.timer(),
        campaign="results/campaign/{gpu}.json",
        code=plan.code("time"),
        before=judging.before,
    output:
        "results/aa/round{round}/time/{gpu}/{family}/{variant}.json",
    log:
        "results/logs/aa/round{round}/{gpu}/{family}/{variant}.log",
    wildcard_constraints:
        round=r"[1-9]\d*",
    threads: workflow.cores
    resources:
        gpu=1,
    params:
        family_file=plan.family_file,
        contract=judging.time_contract,
        cases=judging.timed_cases,
        settings=plan.settings["time"],
    script:
        "../scripts/time_round.py"


rule judge_rounds:
    input:
        rounds=judging.rounds,
        code=plan.code("judge"),
    output:
        verdicts="results/aa/verdicts.csv",
        floors="results/aa/floors.csv",
        summary="results/aa/summary.md",
    log:
        "results/logs/aa/judge.log",
    script:
        "../scripts/judge_rounds.py"


rule aa:
    input:
        rules.judge_rounds.output,


rule compare_campaigns:
    input:
        live=judging.measured_first,
        code=plan.code("judge"),
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
        names=judging.names(),
        state=judging.state,
        uri=plan.tracking_uri(),
    script:
        "../scripts/compare_campaigns.py"


# Apart, so that a regression fails the run and keeps what shows it.
rule compare:
    input:
        rules.compare_campaigns.output.json,
    log:
        "results/logs/compare.log",
    script:
        "../scripts/compare.py"


rule plot_history:
    input:
        code=plan.code("judge"),
    output:
        png=report(
            "results/history/{family}.png",
            category="History",
            labels={"family": "{family}"},
        ),
        svg="results/history/{family}.svg",
        csv="results/history/{family}.csv",
    log:
        "results/logs/history/{family}.log",
    params:
        campaigns=judging.history(),
        state=judging.history_state,
    script:
        "../scripts/plot_history.py"


rule history:
    input:
        judging.history_figures(),
