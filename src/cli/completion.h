/* What shells offer for a word of `carma`, from the table of commands. */
#ifndef CARMA_CLI_COMPLETION_H
#define CARMA_CLI_COMPLETION_H

#include <stdbool.h>
#include <stdio.h>

#include "cli/commands.h"

/* Prints the words that may stand in the place of the last of `words`, which begin as it does: a line each, of the
 * word, a tab and what it means. Where files may stand, one line ":file" or ":directory". `words` are those behind
 * "carma". */
void completion_offer(struct cli *cli, FILE *out, char **words, int count);

/* Prints the shell's script, by its name. False: there is none for it. */
bool completion_print(FILE *out, const char *shell);

#endif
