/* Commands that programs of their own carry out: carma-dashboard, and those in Python (python/carma_bench), which get
 * the options parsed by the tables here. */
#ifndef CARMA_CLI_PROGRAMS_PROGRAMS_H
#define CARMA_CLI_PROGRAMS_PROGRAMS_H

#include <argp.h>
#include <stddef.h>
#include <stdint.h>

struct cli;

/* Keys of the options of `carma dashboard`, whose program parses them by dashboard_argp (cli/commands.h). */
enum { DASHBOARD_KEY_PORT = 0x200, DASHBOARD_KEY_NO_OPEN };

/* What an option N may be; the last key of a list is 0. */
struct program_range {
    int key;
    int64_t low, high;
};

/* The words for a program in Python: its name, its command, then "--NAME" and "--NAME=VALUE". */
struct program_words {
    const struct argp *argp; /* the command's table */
    char **words;            /* owned, as its strings; room for each word of the command line, and three more */
    size_t count;
    const struct program_range *ranges; /* of options that are not listed: 1 to 2^31 - 1. NULL: none is listed */
};

/* `name` is the program's, `command` the one that is carried out, by its last word ("bench monitor"). */
void words_begin(struct program_words *program, struct cli *cli, int argc, const char *name, const char *command);

/* For argp parsers: appends an option of the table. TIME becomes nanoseconds; N is checked. */
error_t words_pass(struct program_words *program, int key, char *arg, struct argp_state *state);

/* Executes the program; returns the exit status where that fails. */
int words_run(struct program_words *program);
void words_release(struct program_words *program);

#endif
