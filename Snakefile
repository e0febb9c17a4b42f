"""The entry for a checkout: `snakemake --cores 1` in this folder. The workflow is workflow/Snakefile."""


include: "workflow/Snakefile"


# An include keeps the default target of the file that includes, which has none.
workflow.default_target = "all"
