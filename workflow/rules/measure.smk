# On the GPU, one job at a time (gpu_lock.py): the campaign's identity, correctness, time. A job has all variants of a
# family, since starting a process costs more than measuring one; it leaves alone what is of the same inputs.


rule start_campaign:
    output:
        "results/campaign/{gpu}.json",
    log:
        "results/logs/campaign/{gpu}.log",
    resources:
        gpu=1,
    params:
        name=plan.settings["campaign"],
        commit=plan.settings["commit"],
    script:
        "../scripts/start_campaign.py"


for family in plan.measured():

    rule:
        name:
            f"check_{family.name}"
        input:
            builds=family.builds(),
            libraries=family.libraries(),
            campaign=family.campaign(),
            reference=family.reference(),
            code=plan.code("check"),
        output:
            update(family.records("check")),
        log:
            family.log("check"),
        resources:
            gpu=1,
        params:
            **family.job(),
            contract=family.check_contract(),
            settings=plan.settings["check"],
        script:
            "../scripts/check_family.py"

    rule:
        name:
            f"time_{family.name}"
        input:
            builds=family.builds(),
            libraries=family.libraries(),
            checks=family.records("check"),
            timer=plan.timer(),
            campaign=family.campaign(),
            code=plan.code("time"),
        output:
            update(family.records("time")),
        log:
            family.log("time"),
        # All cores but one, on which the next job may start: nothing that computes runs beside the clock.
        threads: max(1, workflow.cores - 1)
        resources:
            gpu=1,
        params:
            **family.job(),
            contract=family.time_contract(),
            cases=list(family.cases),
            settings=plan.settings["time"],
        script:
            "../scripts/time_family.py"
