/* `.rad` job files, in both forms that are in use. Format: docs/formats/rad.md. */
#ifndef CARMA_API_RAD_H
#define CARMA_API_RAD_H

#include <stddef.h>

#include "base/error.h"

struct job_spec;

#define RAD_MAX_BYTES ((size_t)64 << 10)

/* Fills *spec (inits it) from the file; on an error it is left released. `file` is the name in messages ("FILE:LINE:
 * ...") and, without directories and ".rad", the job's name. The command line becomes {"/bin/sh", "-c", LINE}. Left to
 * the caller: directory, output, environment, and to read the summary: summary_name is the file's name as written,
 * relative to the job file. */
int rad_parse(const char *file, const char *text, size_t length, struct job_spec *spec, struct error *err);

#endif
