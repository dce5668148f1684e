/* Names that a user gives to jobs, to find them again: one project, and tags. Letters, digits and . _ - + : @ %, so
 * that they fit a shell, a path of a request and a table. */
#ifndef CARMA_API_TOLD_LABEL_H
#define CARMA_API_TOLD_LABEL_H

#include <stdbool.h>

#include "base/error.h"

#define LABEL_BYTES  64
#define LABELS_MOST  16 /* tags of one job, and once each */
#define LABELS_BYTES (LABELS_MOST * (LABEL_BYTES + 1))

/* Rows' checks (job_fields.def): one name; several with commas between them. -EINVAL. */
int label_check(const char *text, struct error *err);
int labels_check(const char *text, struct error *err);

/* Whether it is one of the tags; NULL: there are none. */
bool labels_have(const char *labels, const char *label);

#endif
