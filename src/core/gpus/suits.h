/* Which GPUs suit a job by what they are: `--gpu-type` and `--exclude-gpu`. That depends on nothing that changes while
 * a GPU is there.
 *
 * A type is terms joined by '&', of which all must hold, in alternatives joined by '|', as in Slurm's --constraint:
 *
 *     a100            words of the GPU's name as the driver tells it, in either case, with '_' for a blank where one
 * likes; a10 is no A100 sm_80           its compute capability is 8.0
 *     >=sm_80         it is 8.0 or later; also <=, > and <
 *     >=40G           its memory; also <=, > and <. The size is one that GPUs are sold with: the driver, ECC and the
 *                     vendors' rounding leave a tenth less at most, so a GPU counts as having SIZE from nine tenths of
 *                     it on, for >= and <
 *     a100&>=80G|h100 both of the first, or the last */
#ifndef CARMA_CORE_GPUS_SUITS_H
#define CARMA_CORE_GPUS_SUITS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct gpu;
struct record_submitted;
struct strbuf;

/* GPUs from this number on cannot be excluded: record_submitted.excluded_gpus has a bit for each, and a record's number
 * is at most INT64_MAX. */
#define GPU_EXCLUDED_MOST 63

/* -EINVAL: it is no type; one line says why. */
int gpu_type_check(const char *type, struct error *err);

/* Whether the GPU is of the type that the job wants, and not excluded. One of which neither name nor compute capability
 * is known suits only jobs that do not ask for them. */
bool gpu_suits(const struct record_submitted *wants, const struct gpu *gpu);

/* Whether it may turn out to suit it: what the driver calls it is not known yet. */
bool gpu_may_suit(const struct record_submitted *wants, const struct gpu *gpu);

/* Whether the job says which GPUs suit it; and what it says, as options: "--gpu-type a100, --exclude-gpu 0,3". */
bool gpu_choosy(const struct record_submitted *wants);
void gpu_choice(const struct record_submitted *wants, struct strbuf *out);

/* What there is: "4 x NVIDIA A100-SXM4-40GB (40.0 GiB, sm_80), ...". */
void gpu_kinds(struct gpu *const *gpus, uint32_t count, struct strbuf *out);

#endif
