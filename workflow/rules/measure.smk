# On the GPU, one job at a time (resource gpu): the campaign's identity, correctness, time.


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


rule check_variant:
    input:
        build=plan.build_record,
        library=plan.library,
        campaign="results/campaign/{gpu}.json",
        reference=plan.reference,
        code=plan.code("check"),
    output:
        "results/check/{gpu}/{family}/{variant}.json",
    log:
        "results/logs/check/{gpu}/{family}/{variant}.log",
    resources:
        gpu=1,
    params:
        family_file=plan.family_file,
        contract=plan.check_contract,
        settings=plan.settings["check"],
    script:
        "../scripts/check_variant.py"


rule time_variant:
    input:
        build=plan.build_record,
        library=plan.library,
        check="results/check/{gpu}/{family}/{variant}.json",
        timer=plan.timer(),
        campaign="results/campaign/{gpu}.json",
        code=plan.code("time"),
    output:
        "results/time/{gpu}/{family}/{variant}.json",
    log:
        "results/logs/time/{gpu}/{family}/{variant}.log",
    # All cores: nothing else runs beside the clock.
    threads: workflow.cores
    resources:
        gpu=1,
    params:
        family_file=plan.family_file,
        contract=plan.time_contract,
        cases=plan.timed_cases,
        settings=plan.settings["time"],
    script:
        "../scripts/time_variant.py"
