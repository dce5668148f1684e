/* The system calls that would reach out of the namespaces. */
#ifndef CARMA_SANDBOX_FILTER_H
#define CARMA_SANDBOX_FILTER_H

#include <stdbool.h>

#include "base/error.h"

/* For the caller and all that it executes; it must not be able to gain rights any more. `watched`: no control group
 * counts its memory, so that none may be taken where nobody sees it. */
int filter_install(bool watched, struct error *err);

#endif
