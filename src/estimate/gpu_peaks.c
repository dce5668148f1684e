#include "estimate/gpu_peaks.h"

#include <stddef.h>
#include <string.h>

#include "base/memory.h"

static const struct gpu_peaks table[] = {
    {"NVIDIA A100-SXM4-40GB", 195, 1560, 3120},
    {"NVIDIA A100-SXM4-80GB", 195, 1560, 3120},
    {"NVIDIA A100 80GB PCIe", 195, 1560, 3120},
    {"NVIDIA H100 80GB HBM3", 669, 4945, 9894},
    {"NVIDIA H100 PCIe", 512, 3780, 7560},
    {"NVIDIA H200", 669, 4945, 9894},
    {"NVIDIA B200", 750, 11250, 22500},
    {"Tesla V100-SXM2-16GB", 157, 0, 1250},
    {"Tesla V100-SXM2-32GB", 157, 0, 1250},
    {"NVIDIA A10", 312, 625, 1250},
    {"NVIDIA A30", 103, 825, 1650},
    {"NVIDIA L4", 303, 605, 1210},
    {"NVIDIA L40S", 916, 1830, 3660},
    {"Tesla T4", 81, 0, 650},
    {"NVIDIA GeForce RTX 3060", 127, 127, 255},
    {"NVIDIA GeForce RTX 3090", 356, 356, 710},
    {"NVIDIA GeForce RTX 4060", 151, 151, 302},
    {"NVIDIA GeForce RTX 4090", 826, 826, 1652},
};

const struct gpu_peaks *gpu_peaks_find(const char *gpu)
{
    for (size_t i = 0; i < array_size(table); i++)
        if (strcmp(table[i].gpu, gpu) == 0)
            return &table[i];
    return NULL;
}
