# The campaign's identity, and nvcc: one shared object per variant, and the timing core.


rule start_campaign:
    output:
        "results/campaign/{gpu}.json",
    log:
        "results/logs/campaign/{gpu}.log",
    resources:
        gpu=1,
        gpu_model=plan.gres,
        measuring=1,
    params:
        name=plan.settings.campaign,
        commit=plan.settings.commit,
    script:
        "../scripts/build/start_campaign.py"


rule build_variant:
    input:
        source=plan.sources,
        code=code("build"),
    output:
        record="results/build/{arch}/{family}/{variant}/record.json",
        library="results/build/{arch}/{family}/{variant}/kernel.so",
        sass="results/build/{arch}/{family}/{variant}/kernel.sass",
    log:
        "results/logs/build/{arch}/{family}/{variant}.log",
    params:
        job=plan.build_job,
    script:
        "../scripts/build/build_variant.py"


rule build_timer:
    input:
        source=paths.shown(paths.PACKAGE / "measure/worker/timer.cu"),
        code=code("build"),
    output:
        "results/build/{arch}/timer.so",
    log:
        "results/logs/build/{arch}/timer.log",
    script:
        "../scripts/build/build_timer.py"


# First, since a mistake in a contract or reference makes all that follows useless. One job tries all families.
rule try_reference:
    input:
        references=plan.references(),
        code=code("trial"),
    output:
        touch("results/build/.references"),
    log:
        "results/logs/build/references.log",
    priority: 1
    params:
        job=plan.trial_job(),
    script:
        "../scripts/build/try_reference.py"


rule build:
    input:
        plan.compiled(),
        plan.trial(),
        "results/build/.strict" if plan.settings.strict else [],
