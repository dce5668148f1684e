/* Reading a table of options for other ends than parsing: manual pages, completion. */
#ifndef CARMA_BASE_MANUAL_ARGP_WALK_H
#define CARMA_BASE_MANUAL_ARGP_WALK_H

#include <argp.h>

/* Calls `visit` for each option that is not hidden, those of children too, in the order of the tables. It also calls it
 * for each heading (no name, but a text) before the options under it. */
void argp_each_option(const struct argp *argp, void (*visit)(const struct argp_option *option, void *user), void *user);

/* Whether the option can be written with one letter. */
int argp_has_letter(const struct argp_option *option);

/* The text that follows the options in the help, as its filter makes it; owned by the caller, NULL: there is none. */
char *argp_text_after(const struct argp *argp);

#endif
