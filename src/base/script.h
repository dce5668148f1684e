/* Scripts as the kernel runs them. */
#ifndef CARMA_BASE_SCRIPT_H
#define CARMA_BASE_SCRIPT_H

#include "base/error.h"

/* Parses the first line of `text`, "#!INTERPRETER [ARGUMENT]": both are owned by the caller, *argument is NULL where
 * there is none. -EINVAL with one line that names no file. */
int script_interpreter(const char *text, char **interpreter, char **argument, struct error *err);

#endif
