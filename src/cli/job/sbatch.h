/* Slurm's #SBATCH lines in the words of `carma submit`. Options without a meaning here are named: a script that runs
 * under both has some. */
#ifndef CARMA_CLI_JOB_SBATCH_H
#define CARMA_CLI_JOB_SBATCH_H

#include "api/spec_strings.h"

/* Appends the meaning of one line's words to *own, as options of `carma submit`. For each it appends the directive that
 * it comes from, as it was written, to *written. Words without a meaning here go to *ignored, each once. Nonsense in a
 * value is left for `carma submit` to refuse. */
void sbatch_translate(char *const *words, size_t count, struct spec_strings *own, struct spec_strings *written,
                      struct spec_strings *ignored);

/* Of the words, an option that changes which jobs there are, or when they start: such a script is not submitted as if
 * it were not there. NULL: none; else the option's name, static, and in *remedy what to do, static as well. */
const char *sbatch_refused(char *const *words, size_t count, const char **remedy);

/* What to do in place of an option of sbatch, typed behind `carma submit`; NULL: sbatch has none such. Owned by the
 * caller. */
char *sbatch_remedy(const char *word);

/* A file name pattern of sbatch as one of carma: %j, %A and %a stay, %x the job's name, %u the user, %% a percent sign.
 * Others stay as they are. Owned by the caller. */
char *sbatch_path(const char *pattern, const char *job_name);

#endif
