# Verdicts: the same code compared with itself (A/A), two campaigns, all campaigns over time, and kernels whose true
# values are known (oracle).


rule time_round:
    input:
        builds=each(Plan.builds),
        libraries=each(Plan.libraries),
        check=results("check/{gpu}/{family}.json"),
        timer=each(Plan.timer),
        campaign=results("campaign/{gpu}.json"),
        code=plan.code("time"),
        before=each(Judging.before),
    output:
        results("aa/round{round}/time/{gpu}/{family}.json"),
    log:
        results("logs/aa/round{round}/{gpu}/{family}.log"),
    wildcard_constraints:
        round=r"[1-9]\d*",
    threads: plan.timing_threads(workflow.resource_settings.cores)
    resources:
        **plan.boards.slots(),
        gpu=1,
        gpu_model=each(Plan.gres),
    params:
        job=each(Plan.time_job),
    script:
        "../scripts/judge/time_round.py"


rule judge_rounds:
    input:
        rounds=each(Judging.rounds),
        code=plan.code("judge"),
    output:
        verdicts=results("aa/verdicts.csv"),
        floors=results("aa/floors.csv"),
        summary=results("aa/summary.md"),
    log:
        results("logs/aa/judge.log"),
    params:
        plan=each(Plan.decisions),
    script:
        "../scripts/judge/judge_rounds.py"


rule aa:
    input:
        everywhere(rules.judge_rounds.output),


rule compare_campaigns:
    input:
        live=each(Judging.measured_first),
        code=plan.code("judge"),
    output:
        json=results("compare/verdicts.json"),
        csv=results("compare/verdicts.csv"),
        markdown=results("compare/verdicts.md"),
        png=report(
            results("compare/ratios.png"),
            caption="../report/ratios.rst",
            category="Verdicts",
        ),
        svg=results("compare/ratios.svg"),
    log:
        results("logs/compare_campaigns.log"),
    params:
        plan=each(Plan.decisions),
        names=each(Judging.names),
        state=each(Judging.state),
        uri=plan.tracking_uri(),
    script:
        "../scripts/judge/compare_campaigns.py"


# A separate rule, so that a regression fails the run but the files of the comparison are kept.
rule compare:
    input:
        everywhere(rules.compare_campaigns.output.json),
    log:
        "results/logs/compare.log",
    script:
        "../scripts/judge/report_comparison.py"


# One job for all families: it reads each campaign once.
rule plot_history:
    input:
        code=plan.code("judge"),
    output:
        png=report(
            expand(
                results("history/{family}.png"), family=plan.chosen, allow_missing=True
            ),
            caption="../report/history.rst",
            category="History",
        ),
        svg=expand(
            results("history/{family}.svg"), family=plan.chosen, allow_missing=True
        ),
        csv=expand(
            results("history/{family}.csv"), family=plan.chosen, allow_missing=True
        ),
    log:
        results("logs/history.log"),
    params:
        plan=each(Plan.decisions),
        campaigns=each(Judging.history),
        state=each(Judging.history_state),
    script:
        "../scripts/judge/plot_history.py"


rule history:
    input:
        everywhere(rules.plot_history.output.png),


rule judge_oracle:
    input:
        build=each(Plan.oracle_files, "build"),
        check=each(Plan.oracle_files, "check"),
        time=each(Plan.oracle_files, "time"),
        extract=each(Plan.oracle_files, "extract"),
        campaign=each(Plan.campaign),
        gpus=each(Plan.gpu_files),
        code=plan.code("oracle"),
    output:
        csv=results("tables/oracle.csv"),
        parquet=results("tables/oracle.parquet"),
    log:
        results("logs/judge_oracle.log"),
    params:
        plan=each(Plan.decisions),
        contract=each(Plan.oracle_contract),
    script:
        "../scripts/judge/judge_oracle.py"


rule oracle:
    input:
        everywhere(rules.judge_oracle.output.csv),
    log:
        "results/logs/oracle.log",
    script:
        "../scripts/judge/report_oracle.py"


rule audit:
    input:
        pages=everywhere(results("worklog/{family}.md"), family=plan.chosen),
        tables=rules.tables.input,
    log:
        "results/logs/audit.log",
    script:
        "../scripts/judge/audit.py"
