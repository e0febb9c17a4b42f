# The campaign's identity, and nvcc: one shared object per variant, and the timing core.


rule start_campaign:
    output:
        "results/campaign/{gpu}.json",
    log:
        "results/logs/campaign/{gpu}.log",
    resources:
        gpu=1,
        gpu_model=parameters.gres,
        measuring=1,
    params:
        name=plan.settings.campaign,
        commit=plan.settings.commit,
    script:
        "../scripts/build/start_campaign.py"


rule build_variant:
    input:
        source=files.sources,
    output:
        record=update("results/build/{arch}/{family}/{variant}/record.json"),
        library=update("results/build/{arch}/{family}/{variant}/kernel.so"),
        sass=update("results/build/{arch}/{family}/{variant}/kernel.sass"),
    log:
        "results/logs/build/{arch}/{family}/{variant}.log",
    params:
        version=stages.BUILD.version,
        job=parameters.build,
    script:
        "../scripts/build/build_variant.py"


rule build_timer:
    input:
        source=paths.shown(paths.PACKAGE / "measure/worker/timer.cu"),
    output:
        "results/build/{arch}/timer.so",
    log:
        "results/logs/build/{arch}/timer.log",
    params:
        version=stages.TIMER.version,
    script:
        "../scripts/build/build_timer.py"


# First, since a mistake in a contract or reference makes all that follows useless. One job tries all families.
rule try_reference:
    input:
        references=files.references(),
    output:
        touch("results/build/.references"),
    log:
        "results/logs/build/references.log",
    priority: 1
    params:
        version=stages.TRIAL.version,
        job=parameters.trial(),
    script:
        "../scripts/build/try_reference.py"


rule build:
    input:
        files.compiled(),
        files.trial(),
        "results/build/.strict" if plan.settings.strict else [],
