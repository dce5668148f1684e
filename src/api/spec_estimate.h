/* An estimator's answer for a submitted job: made once by the daemon, stored beside the submission, shown to people. */
#ifndef CARMA_API_SPEC_ESTIMATE_H
#define CARMA_API_SPEC_ESTIMATE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "api/spec_strings.h"
#include "base/error.h"
#include "estimate/estimate.h"

struct job_spec;

struct job_estimate {
    int64_t bytes;                /* per GPU, at the quantile; -1: none could be made, the warnings say why */
    int64_t median_bytes;         /* the best guess without margin; -1: none */
    int32_t quantile_permille;    /* the probability with which `bytes` is to be enough */
    int32_t confidence_permille;  /* of the estimator in itself: estimate/estimate.h */
    int32_t smact_permille;       /* expected SM activity alone on the GPU; -1: not known */
    int32_t uncorrected_permille; /* the same by the estimator, before runs corrected it; -1: it said nothing */
    char *model;                  /* owned: "cnn 102228128", family and bytes of parameters; NULL: not known */
    char *source;                 /* owned: the estimators that counted, as "history+replay"; NULL: none */
    char *from;                   /* owned: the files that it went by, with ", " between them; NULL: none */
    char *profile;                /* owned: the machine profile that it was made for; NULL: none */
    struct spec_strings warnings; /* one line each */
};

void job_estimate_init(struct job_estimate *estimate); /* none could be made, nothing to say */
void job_estimate_release(struct job_estimate *estimate);

struct job_estimate job_estimate_copy(const struct job_estimate *estimate);

bool job_estimate_equal(const struct job_estimate *a, const struct job_estimate *b);

/* The estimate from those of these that the job has: capture, configuration, summary, combined (estimate/combine.h);
 * inits *estimate. Where one gives none, a warning says why. Never looks at declared or recorded figures of the job. 0
 * also where the estimator lacks its input: bytes is then -1 and a warning names the missing input. -EINVAL: the best
 * of them is malformed, with the parser's line. -E2BIG: they have more events than *events_left, from which they are
 * taken, and nothing was replayed of the one that passes it. Touches nothing but its arguments: may run on any thread.
 */
int job_estimate_make(struct job_estimate *estimate, const struct job_spec *spec, const struct estimator *estimator,
                      const struct machine_profile *profile, int32_t quantile_permille, int64_t *events_left,
                      struct error *err);

/* Adds what the job's environment, command or script tells PyTorch's allocator. */
void job_allocator_settings(const struct job_spec *spec, struct allocator_settings *settings);

json_t *job_estimate_to_json(const struct job_estimate *estimate);                                /* a new reference */
int job_estimate_from_json(const json_t *json, struct job_estimate *estimate, struct error *err); /* inits; -EINVAL */

/* "estimated 8.4 GiB by replay (confidence 0.93, at quantile 0.98) from resnet50.summary"; NULL where there is none.
 * Owned by the caller. */
char *job_estimate_text(const struct job_estimate *estimate);

#endif
