# How boards of one model differ: the oracle's spins on each board of the campaign, only on request: `snakemake boards`.


rule time_board:
    input:
        builds=each(Plan.builds),
        libraries=each(Plan.libraries),
        check=results("check/{gpu}/{family}.json"),
        timer=each(Plan.timer),
        campaign=results("campaign/{gpu}.json"),
        code=plan.code("time"),
    output:
        update(results("boards/{board}/time/{gpu}/{family}.json")),
    log:
        results("logs/boards/{board}/{gpu}/{family}.log"),
    threads: plan.timing_threads(workflow.resource_settings.cores)
    resources:
        **plan.boards.slots_by_board(),
        gpu=1,
        gpu_model=each(Plan.gres),
        measuring=1,
        board=plan.boards.named_board,
    params:
        job=each(Plan.time_job),
    script:
        "../scripts/boards/time_board.py"


rule compare_boards:
    input:
        each(Plan.board_records),
        campaign=each(Plan.campaign),
        code=plan.code("boards"),
    output:
        parquet=results("tables/boards.parquet"),
        csv=results("tables/boards.csv"),
    log:
        results("logs/boards.log"),
    params:
        plan=each(Plan.decisions),
        records=each(Plan.board_records),
    script:
        "../scripts/boards/compare_boards.py"


rule boards:
    input:
        everywhere(rules.compare_boards.output),
