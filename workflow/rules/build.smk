# nvcc: one shared object a variant, and the timing core.


rule build_variant:
    input:
        source=plan.sources,
        code=plan.code("build"),
    output:
        record="results/build/{arch}/{family}/{variant}/record.json",
        library="results/build/{arch}/{family}/{variant}/kernel.so",
        sass="results/build/{arch}/{family}/{variant}/kernel.sass",
    log:
        "results/logs/build/{arch}/{family}/{variant}.log",
    params:
        family_file=plan.family_file,
        contract=plan.contract,
        parameters=plan.parameters,
        recorded=plan.recorded_build,
    script:
        "../scripts/build_variant.py"


rule build_timer:
    input:
        "workflow/warplog/gpu/timer.cu",
    output:
        "results/build/{arch}/timer.so",
    log:
        "results/logs/build/{arch}/timer.log",
    script:
        "../scripts/build_timer.py"


rule build:
    input:
        plan.compiled(),
