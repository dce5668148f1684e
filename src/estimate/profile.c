#include "estimate/profile.h"

#include <stdbool.h>
#include <string.h>

#include "base/memory.h"
#include "base/units.h"

/* GPU facts: the maker's data sheets (SMs, boost clock, bandwidth). Memory: nvidia-smi's total, less the 560 MiB that
 * jobs cannot use: on the A100 with 40960 MiB the measured runs end at about 40400 MiB. Contexts were measured on that
 * A100 alone (docs/formats/profile.md). The software was the thesis's (PyTorch 2.4.1, CUDA 12.2), and the later one of
 * CARMA's task files, where kernels are loaded when first used. */
#define LATER_CONTEXT_MIB 500
#define LATER_CUDNN_MIB   25
#define DATA_SHEET        "data sheet; context assumed as on an A100 with later software"
#define NOT_FOR_JOBS_MIB  560
#define XMEM_RUNS         "the xMem benchmark (PyTorch 2.6, CUDA 12.4): what runs that died had, and the rest; cuDNN assumed"

#define GPU(NAME, MODEL, TOTAL_MIB, SMS, MHZ, GBPS, WORKSPACE_KIB)                                                     \
    {                                                                                                                  \
        .name = NAME, .gpu = MODEL, .source = DATA_SHEET, .context_bytes = LATER_CONTEXT_MIB * MIB,                    \
        .cudnn_bytes = LATER_CUDNN_MIB * MIB, .cublas_workspace_bytes = (WORKSPACE_KIB)*KIB,                           \
        .memory_bytes = ((TOTAL_MIB)-NOT_FOR_JOBS_MIB) * MIB, .sm_count = SMS, .sm_clock_mhz = MHZ,                    \
        .bandwidth_gbps = GBPS                                                                                         \
    }

#define OF_XMEM(NAME, MODEL, CONTEXT_MIB, MEMORY_MIB, SMS, MHZ, GBPS)                                                  \
    {                                                                                                                  \
        .name = NAME, .gpu = MODEL, .source = XMEM_RUNS, .context_bytes = (CONTEXT_MIB)*MIB,                           \
        .cudnn_bytes = LATER_CUDNN_MIB * MIB, .cublas_workspace_bytes = WORKSPACE_KIB * KIB,                           \
        .memory_bytes = (MEMORY_MIB)*MIB, .sm_count = SMS, .sm_clock_mhz = MHZ, .bandwidth_gbps = GBPS                 \
    }

/* PyTorch's default, CUBLAS_WORKSPACE_CONFIG=:4096:2:16:8, and :4096:8 from Hopper on. */
#define WORKSPACE_KIB        8320
#define WORKSPACE_HOPPER_KIB 32768

static const struct machine_profile builtin[] = {
    {.name = MACHINE_PROFILE_DEFAULT,
     .gpu = "NVIDIA A100-SXM4-40GB",
     .source = "measured: medians over the published GPUMemNet runs (PyTorch 2.4.1, CUDA 12.2)",
     .context_bytes = 1429 * MIB,
     .cudnn_bytes = 258 * MIB,
     .cublas_workspace_bytes = WORKSPACE_KIB * KIB,
     .memory_bytes = 40400 * MIB,
     .sm_count = 108,
     .sm_clock_mhz = 1410,
     .bandwidth_gbps = 1555},
    {.name = "a100-40g-later",
     .gpu = "NVIDIA A100-SXM4-40GB",
     .source =
         "measured: the same models in CARMA's task files (later software), as differences to the thesis's column",
     .context_bytes = LATER_CONTEXT_MIB * MIB,
     .cudnn_bytes = LATER_CUDNN_MIB * MIB,
     .cublas_workspace_bytes = WORKSPACE_KIB * KIB,
     .memory_bytes = 40400 * MIB,
     .sm_count = 108,
     .sm_clock_mhz = 1410,
     .bandwidth_gbps = 1555},
    GPU("a100-80g", "NVIDIA A100-SXM4-80GB", 81920, 108, 1410, 2039, WORKSPACE_KIB),
    GPU("a100-80g-pcie", "NVIDIA A100 80GB PCIe", 81920, 108, 1410, 1935, WORKSPACE_KIB),
    GPU("h100", "NVIDIA H100 80GB HBM3", 81559, 132, 1980, 3352, WORKSPACE_HOPPER_KIB),
    GPU("h100-pcie", "NVIDIA H100 PCIe", 81559, 114, 1755, 2039, WORKSPACE_HOPPER_KIB),
    GPU("h200", "NVIDIA H200", 143771, 132, 1980, 4800, WORKSPACE_HOPPER_KIB),
    GPU("b200", "NVIDIA B200", 183359, 148, 1980, 8000, WORKSPACE_HOPPER_KIB),
    GPU("v100-16g", "Tesla V100-SXM2-16GB", 16384, 80, 1530, 900, WORKSPACE_KIB),
    GPU("v100-32g", "Tesla V100-SXM2-32GB", 32768, 80, 1530, 900, WORKSPACE_KIB),
    GPU("a10", "NVIDIA A10", 23028, 72, 1695, 600, WORKSPACE_KIB),
    GPU("a30", "NVIDIA A30", 24576, 56, 1440, 933, WORKSPACE_KIB),
    GPU("l4", "NVIDIA L4", 23034, 58, 2040, 300, WORKSPACE_KIB),
    GPU("l40s", "NVIDIA L40S", 46068, 142, 2520, 864, WORKSPACE_KIB),
    GPU("t4", "Tesla T4", 15360, 40, 1590, 320, WORKSPACE_KIB),
    OF_XMEM("rtx-3060", "NVIDIA GeForce RTX 3060", 181, 12037, 28, 1777, 360),
    OF_XMEM("rtx-4060", "NVIDIA GeForce RTX 4060", 157, 7932, 24, 2460, 272),
    GPU("rtx-3090", "NVIDIA GeForce RTX 3090", 24576, 82, 1695, 936, WORKSPACE_KIB),
    GPU("rtx-4090", "NVIDIA GeForce RTX 4090", 24564, 128, 2520, 1008, WORKSPACE_KIB),
};

const struct machine_profile *machine_profile_builtin(size_t index)
{
    return index < array_size(builtin) ? &builtin[index] : NULL;
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool same_but_case(const char *a, const char *b)
{
    while (*a && lower(*a) == lower(*b)) {
        a++;
        b++;
    }
    return lower(*a) == lower(*b);
}

static const char *without_maker(const char *gpu)
{
    static const char *const prefixes[] = {"nvidia ", "tesla ", "geforce "};

    for (size_t i = 0; i < array_size(prefixes); i++) {
        size_t n = 0;
        while (prefixes[i][n] && lower(gpu[n]) == prefixes[i][n])
            n++;
        if (!prefixes[i][n])
            gpu += n;
    }
    return gpu;
}

const struct machine_profile *machine_profile_find(const char *name)
{
    for (size_t i = 0; i < array_size(builtin); i++)
        if (same_but_case(name, builtin[i].name))
            return &builtin[i];
    for (size_t i = 0; i < array_size(builtin); i++)
        if (same_but_case(without_maker(name), without_maker(builtin[i].gpu)))
            return &builtin[i];
    return NULL;
}
