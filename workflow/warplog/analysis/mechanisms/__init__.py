"""Why a kernel takes its time, as a model: what a step should gain, by which mechanism, and what would help next."""
