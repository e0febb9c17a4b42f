# On the GPU: correctness, time, counters (ncu) and timeline (nsys). One job measures all variants of a family, since
# starting a process takes longer than measuring a kernel; records of variants with unchanged inputs are kept.


rule check_family:
    input:
        builds=plan.builds,
        libraries=plan.libraries,
        campaign="results/campaign/{gpu}.json",
        reference=plan.reference,
        code=code("check"),
    output:
        update("results/check/{gpu}/{family}.json"),
    log:
        "results/logs/check/{gpu}/{family}.log",
    retries: plan.retries
    resources:
        **plan.boards.slots(),
        gpu=1,
        gpu_model=plan.gres,
    params:
        job=plan.check_job,
    script:
        "../scripts/measure/check_family.py"


rule time_family:
    input:
        builds=plan.builds,
        libraries=plan.libraries,
        check="results/check/{gpu}/{family}.json",
        timer=plan.timer(),
        campaign="results/campaign/{gpu}.json",
        code=code("time"),
    output:
        update("results/time/{gpu}/{family}.json"),
    log:
        "results/logs/time/{gpu}/{family}.log",
    priority: plan.boards.priority
    retries: plan.retries
    threads: plan.timing_threads(workflow.resource_settings.cores)
    resources:
        **plan.boards.slots(),
        gpu=1,
        gpu_model=plan.gres,
    params:
        job=plan.time_job,
    script:
        "../scripts/measure/time_family.py"


rule profile_ncu:
    input:
        builds=plan.builds,
        libraries=plan.libraries,
        check="results/check/{gpu}/{family}.json",
        campaign="results/campaign/{gpu}.json",
        code=code("profile"),
    output:
        update("results/profile/{gpu}/{family}.ncu.json"),
    log:
        "results/logs/profile/{gpu}/{family}.ncu.log",
    priority: plan.boards.priority
    retries: plan.retries
    resources:
        **plan.boards.slots(),
        gpu=1,
        gpu_model=plan.gres,
    params:
        job=plan.ncu_job,
    script:
        "../scripts/measure/profile_ncu.py"


rule profile_nsys:
    input:
        builds=plan.builds,
        libraries=plan.libraries,
        check="results/check/{gpu}/{family}.json",
        campaign="results/campaign/{gpu}.json",
        code=code("profile"),
    output:
        update("results/profile/{gpu}/{family}.nsys.json"),
    log:
        "results/logs/profile/{gpu}/{family}.nsys.log",
    priority: plan.boards.priority
    retries: plan.retries
    resources:
        **plan.boards.slots(),
        gpu=1,
        gpu_model=plan.gres,
    params:
        job=plan.nsys_job,
    script:
        "../scripts/measure/profile_nsys.py"


# Rule `all` requests these flag files, so that `--until check` can stop the default run there.
rule check:
    input:
        plan.files("check"),
    output:
        touch("results/check/.complete"),


rule time:
    input:
        plan.files("time"),
    output:
        touch("results/time/.complete"),


rule profile:
    input:
        plan.files("profile", ".ncu.json"),
        plan.files("profile", ".nsys.json"),
    output:
        touch("results/profile/.complete"),
