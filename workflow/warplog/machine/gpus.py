"""Known GPUs (gpus.yaml): peak rates by slug."""

from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType

from warplog.records.fields import Frozen, matching

_Rate = Annotated[float, Meta(gt=0, le=100_000)]
_Clock = Annotated[int, Meta(ge=1, le=10_000)]
PeakOrigin = Literal["data_sheet", "device", "measured"]


class KnownGpu(Frozen, frozen=True, kw_only=True):
    """A GPU that the package (warplog/machine/gpus.yaml) or config/gpus.yaml of the project lists, which comes first.

    Its key is the name that NVIDIA's driver reports, in lower case, without vendor and product line: "NVIDIA GeForce
    RTX 4090" is rtx-4090. A GPU without an entry works too: its peaks are computed from the clocks that the driver
    reports.
    """

    arch: Annotated[
        str,
        matching("sm_(7[5-9]|[89][0-9]|1[0-9][0-9])", "an architecture from sm_75 on, such as sm_90"),
        Meta(description="Architecture that nvcc compiles for."),
    ]
    sms: Annotated[int, Meta(ge=1, le=1024, description="Number of enabled streaming multiprocessors.")]
    fp32_tflops_peak: (
        Annotated[
            float,
            Meta(
                gt=0,
                le=10_000,
                description="Peak FP32 rate without tensor cores, in 10^12 FLOP/s at the boost clock. Computed from the"
                " clocks if omitted.",
            ),
        ]
        | UnsetType
    ) = UNSET
    fp32_peak_mhz: (
        Annotated[_Clock, Meta(description="SM clock in MHz at which the FP32 peak holds.")] | UnsetType
    ) = UNSET
    tf32_tflops_peak: (
        Annotated[_Rate, Meta(description="Peak dense TF32 rate of the tensor cores, in 10^12 FLOP/s.")]
        | UnsetType
    ) = UNSET
    bf16_tflops_peak: (
        Annotated[
            _Rate,
            Meta(
                description="Peak dense bfloat16 rate of the tensor cores with FP32 accumulation, in 10^12 FLOP/s;"
                " that of FP16 is the same."
            ),
        ]
        | UnsetType
    ) = UNSET
    fp8_tflops_peak: (
        Annotated[
            _Rate,
            Meta(
                description="Peak dense FP8 rate of the tensor cores with FP32 accumulation, in 10^12 FLOP/s."
            ),
        ]
        | UnsetType
    ) = UNSET
    tensor_peak_mhz: (
        Annotated[
            _Clock,
            Meta(
                description="SM clock in MHz at which the peaks of the tensor cores hold; often below the boost clock."
            ),
        ]
        | UnsetType
    ) = UNSET
    dram_gbytes_per_s_peak: (
        Annotated[
            _Rate,
            Meta(
                description="Peak device-memory bandwidth, in 10^9 bytes per second. Computed from clock and bus width"
                " if omitted."
            ),
        ]
        | UnsetType
    ) = UNSET
    gres: (
        Annotated[
            str,
            matching("[A-Za-z0-9_.]{1,63}", "up to 63 letters, digits and _ ."),
            Meta(
                description="Type of the GPU in a cluster's scheduler, such as a100 in gpu:a100:4. The slug if omitted"
                " and the slug is a single word; otherwise jobs request any GPU."
            ),
        ]
        | UnsetType
    ) = UNSET
    l2_mib: (
        Annotated[float, Meta(gt=0, le=4096, description="L2 cache size in MiB, as the device reports it.")]
        | UnsetType
    ) = UNSET
    origin: Annotated[
        PeakOrigin,
        Meta(
            description="How the peaks were found: data_sheet (stated by the vendor), device (computed from what the"
            " device reports) or measured (such as by a benchmark of your own). Figures show it."
        ),
    ] = "data_sheet"
    source: Annotated[
        str,
        Meta(
            min_length=3,
            max_length=200,
            description="Source of the numbers, shown in every figure that uses them.",
        ),
    ]


KnownGpus = dict[
    Annotated[
        str, matching("[a-z0-9]+(-[a-z0-9]+)*", "small letters and digits with single hyphens between them")
    ],
    KnownGpu,
]
