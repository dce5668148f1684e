/* A submission's config.json and its words on the training, as if a step had been recorded. */
#ifndef CARMA_API_HF_TRAINING_H
#define CARMA_API_HF_TRAINING_H

#include "base/error.h"
#include "estimate/program/capture.h"
#include "estimate/transformer/transformer.h"

struct job_spec;

/* Fills *transformer and *method, inits *capture, which capture_release() ends; empty where it fails. -EINVAL with one
 * line: a configuration that is not one, of a family that is not known, or too large; -ENOTSUP: no batch size; -E2BIG:
 * of more events than are left (estimate/estimate.h). Defaults: AdamW, fp32, the job's GPUs. */
int hf_training_capture(struct capture *capture, struct transformer *transformer, struct method *method,
                        const struct job_spec *spec, int64_t *events_left, struct error *err);

#endif
