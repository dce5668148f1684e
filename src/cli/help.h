/* The list of commands, printed from their table. */
#ifndef CARMA_CLI_HELP_H
#define CARMA_CLI_HELP_H

#include <stdio.h>

void help_print(FILE *stream);

#endif
