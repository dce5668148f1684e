#include "base/usage.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static error_t no_second_line(int key, char *argument, struct argp_state *state)
{
    if (key != ARGP_KEY_INIT)
        return ARGP_ERR_UNKNOWN;
    state->child_inputs[0] = state->input;
    state->err_stream = NULL; /* getopt has printed the error on stderr; argp would add where help is */
    return 0;
}

void usage_parse(const struct manual *program, int argc, char **argv, void *input)
{
    const struct argp_child children[] = {{program->argp, 0, NULL, 0}, {0}};
    const struct argp whole = {.parser = no_second_line, .children = children};

    if (argc == 2 && strcmp(argv[1], "--man") == 0) {
        manual_write(stdout, program);
        exit(ferror(stdout) || fflush(stdout) ? EXIT_FAILURE : EXIT_SUCCESS);
    }
    if (argp_parse(&whole, argc, argv, 0, NULL, input) != 0)
        exit(EXIT_USAGE);
}

void usage_error(const struct argp_state *state, const char *format, ...)
{
    va_list args;

    fprintf(stderr, "%s: ", state->name);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fprintf(stderr, " (see: %s --help)\n", state->name);
    exit(EXIT_USAGE);
}
