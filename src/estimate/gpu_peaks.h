/* Arithmetic peaks of GPUs, dense, in tenths of TFLOP/s. V100, T4, A100, A10, A30, L4, L40S, H100 and H200 are from
 * NVIDIA's data sheets, B200 an eighth of that of HGX B200. RTX 3090 and 4090 are from the Ampere and Ada architecture
 * papers, RTX 3060 and 4060 by their cores and boost clocks in the same proportions. GeForce: with sums in fp32, as
 * PyTorch has them. */
#ifndef CARMA_ESTIMATE_GPU_PEAKS_H
#define CARMA_ESTIMATE_GPU_PEAKS_H

#include <stdint.h>

struct gpu_peaks {
    const char *gpu;          /* as NVML names it */
    int32_t fp32, tf32, half; /* tf32 0: it has none */
};

const struct gpu_peaks *gpu_peaks_find(const char *gpu); /* NULL: not known */

#endif
