/* What users wrote, as JSON: carmad refuses what is not UTF-8, and a lease must not hang on that. */
#ifndef CARMA_SLURM_STEP_WORDS_H
#define CARMA_SLURM_STEP_WORDS_H

#include <jansson.h>
#include <stddef.h>

/* A string with '?' for each byte that is not UTF-8, and for NUL, at which C programs that read it would stop. */
json_t *words_json(const char *bytes, size_t length);
json_t *words_json_of(const char *text);

#endif
