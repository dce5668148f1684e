/* A submission as the store has it (docs/formats/store.md): its specification, its estimate, and its user. */
#ifndef CARMA_API_SUBMISSION_TEXT_H
#define CARMA_API_SUBMISSION_TEXT_H

#include <stdint.h>

#include "api/spec_estimate.h"
#include "base/error.h"

struct job_spec;

#define OWNER_NO_GID  (-1) /* the uid has no entry: `user` is its number */
#define OWNER_UNKNOWN (-2) /* nobody has looked */

/* In the place of one that was refused, as it could not be stored, while its records are there and its end is not. */
#define SUBMISSION_WITHDRAWN "{\"withdrawn\":true}"

struct owner {
    char *user; /* owned */
    int64_t gid;
};

/* The texts are the caller's to free; reading inits all three; the owner is {NULL, OWNER_UNKNOWN} where an earlier
 * carma wrote it. The specification's text may be made before, as it takes longest, and joined with the rest. */
char *submission_spec_to_text(const struct job_spec *spec);
char *submission_join(const char *spec, const struct job_estimate *estimate, const struct owner *owner);
char *submission_to_text(const struct job_spec *spec, const struct job_estimate *estimate, const struct owner *owner);
int submission_from_text(const char *text, struct job_spec *spec, struct job_estimate *estimate, struct owner *owner,
                         struct error *err);

#endif
