/* Wrong usage is reported in one line, also by the programs whose command line argp parses: argp itself would take
 * two. */
#ifndef CARMA_BASE_USAGE_H
#define CARMA_BASE_USAGE_H

#include <argp.h>

#include "base/manual/manual.h"

#define EXIT_USAGE 2

/* argp_parse by the program's table; ends the program with EXIT_USAGE where an option is not known or lacks its
 * argument. The one argument --man prints its manual page, and ends it as well: that is how a build makes the page. */
void usage_parse(const struct manual *program, int argc, char **argv, void *input);

/* For the parser: prints "PROGRAM: ... (see: PROGRAM --help)" on stderr and ends the program with EXIT_USAGE. */
void usage_error(const struct argp_state *state, const char *format, ...)
    __attribute__((format(printf, 2, 3), noreturn));

#endif
