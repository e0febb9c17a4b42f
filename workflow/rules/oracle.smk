# Kernels whose true answers are known: is what warplog measures on this machine right?


rule judge_oracle:
    input:
        build=plan.oracle().files("build"),
        check=plan.oracle().files("check"),
        time=plan.oracle().files("time"),
        extract=plan.oracle().files("extract"),
        campaign=plan.campaign(),
        gpus="config/gpus.yaml",
        code=plan.code("oracle"),
    output:
        csv="results/tables/oracle.csv",
        parquet="results/tables/oracle.parquet",
    log:
        "results/logs/judge_oracle.log",
    params:
        contract=plan.oracle().table_contract(),
    script:
        "../scripts/judge_oracle.py"


rule oracle:
    input:
        csv=rules.judge_oracle.output.csv,
    log:
        "results/logs/oracle.log",
    script:
        "../scripts/oracle.py"
