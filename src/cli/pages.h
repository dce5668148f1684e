/* The manual pages of carma and its commands. */
#ifndef CARMA_CLI_PAGES_H
#define CARMA_CLI_PAGES_H

#include <stdio.h>

#include "base/error.h"
#include "cli/commands.h"

void pages_print(FILE *out);                                        /* carma(1) */
void pages_print_command(FILE *out, const struct command *command); /* carma-submit(1), carma-trace-build(1) */

/* Writes all of them into the directory, as carma.1, carma-submit.1, ... */
int pages_write(const char *directory, struct error *err);

#endif
