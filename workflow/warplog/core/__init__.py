"""The ground floor: records, schemas, numbers, text, processes. Knows nothing of kernels."""
