/* What a process hands on to those that it starts, besides its environment: its umask, its group and its soft limits.
 * As one line of words, "umask=0022 gid=1000 nofile=1024 stack=unlimited", which a job keeps of its submitter. */
#ifndef CARMA_BASE_SURROUNDINGS_H
#define CARMA_BASE_SURROUNDINGS_H

#include <sys/types.h>

#include "base/error.h"

/* Those of the calling process, which has one thread. The caller's to free. */
char *surroundings_of_caller(void);

/* -EINVAL: a word of the line is none, and err names it. */
int surroundings_check(const char *line, struct error *err);

/* The group in the line; (gid_t)-1: there is none. */
gid_t surroundings_group(const char *line);

/* Sets the umask and the soft limits of the calling process, none above its hard limit. A word that cannot be set is
 * left out. */
void surroundings_take(const char *line);

#endif
