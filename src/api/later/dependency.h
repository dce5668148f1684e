/* On which jobs a job depends, in Slurm's words: "afterok:12:13,afterany:14,afternotok:15,after:16+5,singleton". All of
 * it has to come true. */
#ifndef CARMA_API_DEPENDENCY_H
#define CARMA_API_DEPENDENCY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "core/record.h"

#define DEPENDENCIES_MAX 1000 /* of one job */

#define DEPENDENCY_OWN_INDEX (-2) /* aftercorr: afterok on the one with the waiting job's own index */

#define DEPENDENCY_LAST INT64_MAX /* "@": carma submit says the job's number in its place */

struct job_dependency {
    uint64_t job;     /* or all jobs of the array; 0: singleton, all earlier jobs of its user with its name */
    int64_t index;    /* the one of the array with that index; -1: not said; or DEPENDENCY_OWN_INDEX */
    uint32_t kind;    /* enum depends_kind */
    int64_t delay_ns; /* of DEPENDS_START */
};

/* The dependencies of the text, which the caller frees, and their number. -EINVAL. */
int dependency_parse(const char *text, struct job_dependency **list, size_t *count, struct error *err);

/* A row's check (job_fields.def). */
int dependency_check(const char *text, struct error *err);

const char *dependency_word(uint32_t kind); /* "afterok", ... */

#endif
