# Counters (ncu) and timeline (nsys), then their values by name.


rule profile_ncu:
    input:
        build=plan.build_record,
        library=plan.library,
        check="results/check/{gpu}/{family}/{variant}.json",
        campaign="results/campaign/{gpu}.json",
        code=plan.code("profile"),
    output:
        record="results/profile/{gpu}/{family}/{variant}.ncu.json",
        report="results/profile/{gpu}/{family}/{variant}.ncu-rep",
    log:
        "results/logs/profile/{gpu}/{family}/{variant}.ncu.log",
    resources:
        gpu=1,
    params:
        family_file=plan.family_file,
        cases=plan.captured_cases,
        settings=plan.settings["profile"],
    script:
        "../scripts/profile_ncu.py"


rule profile_nsys:
    input:
        build=plan.build_record,
        library=plan.library,
        check="results/check/{gpu}/{family}/{variant}.json",
        campaign="results/campaign/{gpu}.json",
        code=plan.code("profile"),
    output:
        record="results/profile/{gpu}/{family}/{variant}.nsys.json",
        report="results/profile/{gpu}/{family}/{variant}.nsys.sqlite",
    log:
        "results/logs/profile/{gpu}/{family}/{variant}.nsys.log",
    resources:
        gpu=1,
    params:
        family_file=plan.family_file,
        cases=plan.nsys_cases,
        settings=plan.settings["profile"],
    script:
        "../scripts/profile_nsys.py"


rule extract_variant:
    input:
        ncu="results/profile/{gpu}/{family}/{variant}.ncu.json",
        ncu_report="results/profile/{gpu}/{family}/{variant}.ncu-rep",
        nsys="results/profile/{gpu}/{family}/{variant}.nsys.json",
        nsys_report="results/profile/{gpu}/{family}/{variant}.nsys.sqlite",
        sources=plan.sources,
        code=plan.code("extract"),
    output:
        "results/extract/{gpu}/{family}/{variant}.json",
    log:
        "results/logs/extract/{gpu}/{family}/{variant}.log",
    params:
        cases=plan.captured_cases,
        nsys_cases=plan.nsys_cases,
    script:
        "../scripts/extract_variant.py"
