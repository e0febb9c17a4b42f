# Counters (ncu) and timeline (nsys) of all variants of a family in one session each, then their values by name.

for family in plan.measured():

    rule:
        name:
            f"profile_ncu_{family.name}"
        input:
            builds=family.builds(),
            libraries=family.libraries(),
            checks=family.records("check"),
            campaign=family.campaign(),
            code=plan.code("profile"),
        output:
            update(family.records("profile", ".ncu.json")),
        log:
            family.log("profile.ncu"),
        resources:
            gpu=1,
        params:
            **family.job(),
            contract="",
            cases=family.captured_cases(),
            settings=plan.settings["profile"],
        script:
            "../scripts/profile_ncu.py"

    rule:
        name:
            f"profile_nsys_{family.name}"
        input:
            builds=family.builds(),
            libraries=family.libraries(),
            checks=family.records("check"),
            campaign=family.campaign(),
            code=plan.code("profile"),
        output:
            update(family.records("profile", ".nsys.json")),
        log:
            family.log("profile.nsys"),
        resources:
            gpu=1,
        params:
            **family.job(),
            contract="",
            cases=family.nsys_cases(),
            settings=plan.settings["profile"],
        script:
            "../scripts/profile_nsys.py"

    rule:
        name:
            f"extract_{family.name}"
        input:
            ncu=family.records("profile", ".ncu.json"),
            nsys=family.records("profile", ".nsys.json"),
            sources=family.sources(),
            code=plan.code("extract"),
        output:
            update(family.records("extract")),
        log:
            family.log("extract"),
        params:
            cases=family.captured_cases(),
            nsys_cases=family.nsys_cases(),
        script:
            "../scripts/extract_family.py"
