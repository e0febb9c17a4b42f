"""What runs in a worker process, in the CUDA context of the kernel under test."""
