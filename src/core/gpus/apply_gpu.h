/* Records of GPUs, applied. */
#ifndef CARMA_CORE_APPLY_GPU_H
#define CARMA_CORE_APPLY_GPU_H

#include "base/error.h"
#include "core/record.h"

struct core;

/* core_apply of GPU_BACK, GPU_LOST, SAMPLE, SHARE_FAULT, GPU_DRAINED and GPU_RESUMED. */
int apply_gpu(struct core *core, const struct record *record, struct error *err);

/* Shared by applying records and restoring a snapshot. */
int core_apply_gpu_back(struct core *core, const struct record_gpu *record, struct error *err);
int core_apply_gpu_lost(struct core *core, const struct record_gpu *record, struct error *err);
int core_check_sample(const struct core *core, const struct record_sample *sample, struct error *err);

#endif
