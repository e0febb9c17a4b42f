# Timelines from inside kernels, only on request: `snakemake timeline`. Builds with marks are never timed by themselves.


rule build_marked:
    input:
        source=each(Plan.sources),
        code=plan.code("build"),
    output:
        record=results("timeline/build/{arch}/{family}/{variant}/record.json"),
        library=results("timeline/build/{arch}/{family}/{variant}/kernel.so"),
        sass=results("timeline/build/{arch}/{family}/{variant}/kernel.sass"),
    log:
        results("logs/timeline/build/{arch}/{family}/{variant}.log"),
    params:
        job=each(Plan.marked_job),
    script:
        "../scripts/timeline/build_marked.py"


rule capture_timelines:
    input:
        builds=each(Plan.builds_with_timeline),
        libraries=each(Plan.libraries_with_timeline),
        marked=each(Plan.marked_builds),
        marked_libraries=each(Plan.marked_libraries),
        reference=each(Plan.reference),
        check=results("check/{gpu}/{family}.json"),
        timer=each(Plan.timer),
        campaign=results("campaign/{gpu}.json"),
        code=plan.code("timeline"),
    output:
        update(results("timeline/{gpu}/{family}.json")),
    log:
        results("logs/timeline/{gpu}/{family}.log"),
    # As for timing: the overhead of the marks is a difference of times.
    threads: plan.timing_threads(workflow.resource_settings.cores)
    resources:
        **plan.boards.slots(),
        gpu=1,
        gpu_model=each(Plan.gres),
    params:
        job=each(Plan.timeline_job),
    script:
        "../scripts/timeline/capture_timelines.py"


rule timeline:
    input:
        all_of(Plan.timelines),
