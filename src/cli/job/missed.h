/* Lines of a script that look like #CARMA or #SBATCH lines and are none. */
#ifndef CARMA_CLI_JOB_MISSED_H
#define CARMA_CLI_JOB_MISSED_H

#include <stddef.h>

/* A warning for each of the first of them goes to stderr, with its line and why it is not taken. What is commented out
 * twice (##CARMA) is meant so. */
void missed_tell(const char *path, const char *text, size_t length);

#endif
