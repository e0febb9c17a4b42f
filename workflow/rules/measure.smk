# On the GPU: correctness, time, counters (ncu) and timeline (nsys). One job measures all variants of a family, since
# starting a process takes longer than measuring a kernel; records of variants with unchanged inputs are kept.


rule check_family:
    input:
        builds=each(Plan.builds),
        libraries=each(Plan.libraries),
        campaign=results("campaign/{gpu}.json"),
        reference=each(Plan.reference),
        code=plan.code("check"),
    output:
        update(results("check/{gpu}/{family}.json")),
    log:
        results("logs/check/{gpu}/{family}.log"),
    retries: plan.retries
    resources:
        **plan.boards.slots(),
        gpu=1,
        gpu_model=each(Plan.gres),
    params:
        job=each(Plan.check_job),
    script:
        "../scripts/measure/check_family.py"


rule time_family:
    input:
        builds=each(Plan.builds),
        libraries=each(Plan.libraries),
        check=results("check/{gpu}/{family}.json"),
        timer=each(Plan.timer),
        campaign=results("campaign/{gpu}.json"),
        code=plan.code("time"),
    output:
        update(results("time/{gpu}/{family}.json")),
    log:
        results("logs/time/{gpu}/{family}.log"),
    priority: plan.boards.priority
    retries: plan.retries
    threads: plan.timing_threads(workflow.resource_settings.cores)
    resources:
        **plan.boards.slots(),
        gpu=1,
        gpu_model=each(Plan.gres),
    params:
        job=each(Plan.time_job),
    script:
        "../scripts/measure/time_family.py"


rule profile_ncu:
    input:
        builds=each(Plan.builds),
        libraries=each(Plan.libraries),
        check=results("check/{gpu}/{family}.json"),
        campaign=results("campaign/{gpu}.json"),
        code=plan.code("profile"),
    output:
        update(results("profile/{gpu}/{family}.ncu.json")),
    log:
        results("logs/profile/{gpu}/{family}.ncu.log"),
    priority: plan.boards.priority
    retries: plan.retries
    resources:
        **plan.boards.slots(),
        gpu=1,
        gpu_model=each(Plan.gres),
    params:
        job=each(Plan.ncu_job),
    script:
        "../scripts/measure/profile_ncu.py"


rule profile_nsys:
    input:
        builds=each(Plan.builds),
        libraries=each(Plan.libraries),
        check=results("check/{gpu}/{family}.json"),
        campaign=results("campaign/{gpu}.json"),
        code=plan.code("profile"),
    output:
        update(results("profile/{gpu}/{family}.nsys.json")),
    log:
        results("logs/profile/{gpu}/{family}.nsys.log"),
    priority: plan.boards.priority
    retries: plan.retries
    resources:
        **plan.boards.slots(),
        gpu=1,
        gpu_model=each(Plan.gres),
    params:
        job=each(Plan.nsys_job),
    script:
        "../scripts/measure/profile_nsys.py"


# Rule `all` requests these flag files, so that `--until check` can stop the default run there.
rule check:
    input:
        all_of(Plan.files, "check"),
    output:
        touch("results/check/.complete"),


rule time:
    input:
        all_of(Plan.files, "time"),
    output:
        touch("results/time/.complete"),


rule profile:
    input:
        all_of(Plan.files, "profile", ".ncu.json"),
        all_of(Plan.files, "profile", ".nsys.json"),
    output:
        touch("results/profile/.complete"),
