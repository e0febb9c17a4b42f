// plain: the control, which asks nothing of L2.
//
// Idea         The second launch finds in L2 what the first has read.
// Expected     The first launch at the bandwidth of device memory, the second at that of L2.
// Cost         None.
// Constraints  None.

#include "sums.cuh"

extern "C" int launch(const float* x, float* y, int rows, cudaStream_t stream) { return sum_twice(x, y, rows, stream); }
