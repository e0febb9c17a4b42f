"""The entry for a checkout: `snakemake --cores 1` in this folder. The workflow is workflow/Snakefile."""


include: "workflow/Snakefile"


workflow.default_target = (
    "all"  # an include keeps the including file's default target, which has none
)
