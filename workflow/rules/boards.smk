# How boards of one model differ: the oracle's spins on each board of the campaign, only on request: `snakemake boards`.


rule time_board:
    input:
        builds=plan.builds,
        libraries=plan.libraries,
        check="results/check/{gpu}/{family}.json",
        timer=plan.timer(),
        campaign="results/campaign/{gpu}.json",
        code=plan.code("time"),
    output:
        update("results/boards/{board}/time/{gpu}/{family}.json"),
    log:
        "results/logs/boards/{board}/{gpu}/{family}.log",
    threads: plan.timing_threads(workflow.resource_settings.cores)
    resources:
        **plan.boards.slots_by_board(),
        gpu=1,
        gpu_model=plan.gres,
        measuring=1,
        board=plan.boards.named_board,
    params:
        job=plan.time_job,
    script:
        "../scripts/boards/time_board.py"


rule compare_boards:
    input:
        plan.board_records(),
        campaign=plan.campaign(),
        code=plan.code("boards"),
    output:
        parquet="results/tables/boards.parquet",
        csv="results/tables/boards.csv",
    log:
        "results/logs/boards.log",
    params:
        plan=plan.decisions(),
        records=plan.board_records(),
    script:
        "../scripts/boards/compare_boards.py"


rule boards:
    input:
        rules.compare_boards.output,
