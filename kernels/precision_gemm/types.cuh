// What the argument `type` of the family selects: the type of A and B, and that of C, which is that of the sums.
#pragma once

// Internal to each shared object, as in workspace.cuh.
namespace {

enum Type {
    FP32 = 0,
    TF32 = 1,       // A and B are fp32, of which tensor cores use the sign, 8 bits of exponent and 10 of the fraction
    FP16 = 2,
    FP16_ACC16 = 3,  // sums and C in fp16
    BF16 = 4,
    INT8 = 5,  // sums and C in int32
    FP8 = 6,   // e4m3
};

}  // namespace
