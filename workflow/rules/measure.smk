# On the GPU: correctness, time, counters (ncu) and trace (nsys). One job measures all variants of a family, since
# starting a process takes longer than measuring a kernel; records of variants with unchanged inputs are kept.


rule check_family:
    input:
        builds=files.builds,
        libraries=files.libraries,
        campaign="results/campaign/{gpu}.json",
        reference=files.reference,
    output:
        update("results/check/{gpu}/{family}.json"),
    log:
        "results/logs/check/{gpu}/{family}.log",
    retries: parameters.retries
    resources:
        **plan.boards.slots(),
        gpu=1,
        gpu_model=parameters.gres,
    params:
        version=stages.CHECK.version,
        job=parameters.check,
    script:
        "../scripts/measure/check_family.py"


rule time_family:
    input:
        builds=files.builds,
        libraries=files.libraries,
        check="results/check/{gpu}/{family}.json",
        timer=files.timer(),
        campaign="results/campaign/{gpu}.json",
    output:
        update("results/time/{gpu}/{family}.json"),
    log:
        "results/logs/time/{gpu}/{family}.log",
    priority: plan.boards.priority
    retries: parameters.retries
    threads: parameters.timing_threads(workflow.resource_settings.cores)
    resources:
        **plan.boards.slots(),
        gpu=1,
        gpu_model=parameters.gres,
    params:
        version=stages.TIME.version,
        job=parameters.time,
    script:
        "../scripts/measure/time_family.py"


rule profile_ncu:
    input:
        builds=files.builds,
        libraries=files.libraries,
        check="results/check/{gpu}/{family}.json",
        campaign="results/campaign/{gpu}.json",
    output:
        update("results/profile/{gpu}/{family}.ncu.json"),
    log:
        "results/logs/profile/{gpu}/{family}.ncu.log",
    priority: plan.boards.priority
    retries: parameters.retries
    resources:
        **plan.boards.slots(),
        gpu=1,
        gpu_model=parameters.gres,
    params:
        version=stages.NCU.version,
        job=parameters.ncu,
    script:
        "../scripts/measure/profile_ncu.py"


rule profile_nsys:
    input:
        builds=files.builds,
        libraries=files.libraries,
        check="results/check/{gpu}/{family}.json",
        campaign="results/campaign/{gpu}.json",
    output:
        update("results/profile/{gpu}/{family}.nsys.json"),
    log:
        "results/logs/profile/{gpu}/{family}.nsys.log",
    priority: plan.boards.priority
    retries: parameters.retries
    resources:
        **plan.boards.slots(),
        gpu=1,
        gpu_model=parameters.gres,
    params:
        version=stages.NSYS.version,
        job=parameters.nsys,
    script:
        "../scripts/measure/profile_nsys.py"


# Rule `all` requests these flag files, so that `--until check` can stop the default run there.
rule check:
    input:
        files.record_files(stages.CHECK),
    output:
        touch("results/check/.complete"),


rule time:
    input:
        files.record_files(stages.TIME),
    output:
        touch("results/time/.complete"),


rule profile:
    input:
        files.record_files(stages.NCU),
        files.record_files(stages.NSYS),
    output:
        touch("results/profile/.complete"),
