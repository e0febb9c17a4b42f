"""Code of the worker process, which has the CUDA context of the kernel under test."""
