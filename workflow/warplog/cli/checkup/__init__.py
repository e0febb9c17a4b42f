"""What `warplog doctor` looks at: the machine (host), the programs (tools), the GPU (gpu)."""
