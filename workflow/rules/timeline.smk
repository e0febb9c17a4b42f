# Timelines from inside kernels, only on request: `snakemake timeline`. Builds with marks are never timed by themselves.


rule build_marked:
    input:
        source=files.sources,
    output:
        record=update("results/timeline/build/{arch}/{family}/{variant}/record.json"),
        library=update("results/timeline/build/{arch}/{family}/{variant}/kernel.so"),
        sass=update("results/timeline/build/{arch}/{family}/{variant}/kernel.sass"),
    log:
        "results/logs/timeline/build/{arch}/{family}/{variant}.log",
    params:
        version=stages.MARKED.version,
        job=parameters.marked,
    script:
        "../scripts/timeline/build_marked.py"


rule capture_timelines:
    input:
        builds=files.builds_with_timeline,
        libraries=files.libraries_with_timeline,
        marked=files.marked_builds,
        marked_libraries=files.marked_libraries,
        reference=files.reference,
        check="results/check/{gpu}/{family}.json",
        timer=files.timer(),
        campaign="results/campaign/{gpu}.json",
    output:
        update("results/timeline/{gpu}/{family}.json"),
    log:
        "results/logs/timeline/{gpu}/{family}.log",
    # As for timing: the overhead of the marks is a difference of times.
    threads: parameters.timing_threads(workflow.resource_settings.cores)
    resources:
        **plan.boards.slots(),
        gpu=1,
        gpu_model=parameters.gres,
    params:
        version=stages.TIMELINE.version,
        job=parameters.timeline,
    script:
        "../scripts/timeline/capture_timelines.py"


rule timeline:
    input:
        files.timelines(),
