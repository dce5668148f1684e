/* The jobs of an array, in Slurm's words: "0-99%8" are a hundred jobs with the indices 0 to 99, of which at most 8 run
 * at a time; "1,3,10-20:5" are five. The job at position 0 has the array's own number, the others have those behind it.
 */
#ifndef CARMA_API_ARRAY_H
#define CARMA_API_ARRAY_H

#include <stdint.h>

#include "base/error.h"

#define ARRAY_MAX_JOBS   10000
#define ARRAY_MAX_INDEX  4000000 /* as Slurm's */
#define ARRAY_MAX_RANGES 256

struct array_words {
    struct array_range {
        uint32_t first, last, step; /* last is one of them */
    } ranges[ARRAY_MAX_RANGES];     /* rising */
    uint32_t range_count;
    uint32_t jobs;
    uint32_t most; /* at a time; 0: all of them */
};

/* -EINVAL with one line that names the part that is wrong. */
int array_parse(const char *text, struct array_words *words, struct error *err);

/* A row's check (job_fields.def). */
int array_check(const char *text, struct error *err);

/* The index at a position, which is below `jobs`. */
uint32_t array_index(const struct array_words *words, uint32_t position);

/* The position of an index; -1: there is no such job. */
int64_t array_position(const struct array_words *words, uint32_t index);

uint32_t array_last(const struct array_words *words); /* index */

#endif
