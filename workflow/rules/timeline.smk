# Timelines from inside kernels, only on request: `snakemake timeline`. Builds with marks are never timed by themselves.


rule build_marked:
    input:
        source=plan.sources,
        code=code("build"),
    output:
        record="results/timeline/build/{arch}/{family}/{variant}/record.json",
        library="results/timeline/build/{arch}/{family}/{variant}/kernel.so",
        sass="results/timeline/build/{arch}/{family}/{variant}/kernel.sass",
    log:
        "results/logs/timeline/build/{arch}/{family}/{variant}.log",
    params:
        job=plan.marked_job,
    script:
        "../scripts/timeline/build_marked.py"


rule capture_timelines:
    input:
        builds=plan.builds_with_timeline,
        libraries=plan.libraries_with_timeline,
        marked=plan.marked_builds,
        marked_libraries=plan.marked_libraries,
        reference=plan.reference,
        check="results/check/{gpu}/{family}.json",
        timer=plan.timer(),
        campaign="results/campaign/{gpu}.json",
        code=code("timeline"),
    output:
        update("results/timeline/{gpu}/{family}.json"),
    log:
        "results/logs/timeline/{gpu}/{family}.log",
    # As for timing: the overhead of the marks is a difference of times.
    threads: plan.timing_threads(workflow.resource_settings.cores)
    resources:
        **plan.boards.slots(),
        gpu=1,
        gpu_model=plan.gres,
    params:
        job=plan.timeline_job,
    script:
        "../scripts/timeline/capture_timelines.py"


rule timeline:
    input:
        plan.timelines(),
