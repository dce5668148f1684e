/* Makes job specifications from the arguments of `carma submit`. */
#ifndef CARMA_CLI_JOB_SUBMIT_H
#define CARMA_CLI_JOB_SUBMIT_H

#include <argp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "api/spec.h"
#include "base/error.h"
#include "cli/job/sweep.h"

/* The whole command line of `carma submit`. */
struct submit_command {
    struct job_spec options; /* owned; unset members are as job_spec_init_empty() leaves them */
    char **files;            /* in argv */
    size_t file_count;
    char **command; /* in argv, after "--" */
    size_t command_count;
    struct sweep sweep; /* owned */
    bool parsable;
    bool json;
    bool wait;
    bool no_retry;
    bool in_file; /* these are the options of a #CARMA line: not all are allowed there */
};

/* The options go before a job file; those of FILE type name files to read. Each inits *spec and leaves it complete and
 * checked, to be released by the caller in any case. Relative paths are relative to the working directory. Those that a
 * .rad file names, and the default directory of its job, are relative to the file's own; outputs to the job's
 * directory. */
int submit_from_command(struct job_spec *spec, char **argv, size_t argc, const struct job_spec *options,
                        struct error *err);

/* A .rad file, or a script with #CARMA and #SBATCH lines and its arguments; "-": a script from the standard input.
 * Errors begin with FILE: or FILE:LINE:. */
int submit_from_file(struct job_spec *spec, const char *path, char **argv, size_t argc, const struct job_spec *options,
                     struct error *err);

/* The options of fields in a table of argp's: their keys, and their parser; ARGP_ERR_UNKNOWN: the key is not one of
 * theirs. */
#define SUBMIT_KEY(letter, member) ((letter) ? (letter) : 0x2000 + (int)offsetof(struct job_spec, member))
error_t submit_take_option(int key, const char *arg, struct job_spec *spec, struct argp_state *state);

#define SUBMIT_STANDARD_INPUT "-"

/* The same of a script's text, which submit_from_file() has read from path. */
int submit_from_script(struct job_spec *spec, const char *path, const char *text, size_t length, char **argv,
                       size_t argc, const struct job_spec *options, struct error *err);

#define SUBMIT_SCRIPT "CARMA_SCRIPT" /* in a job's environment: where the script was that it runs a copy of */

/* Shared by the sources of the command: the options go first, then the file's values in *spec, then the defaults. Reads
 * the files that it names. */
int submit_complete(struct job_spec *spec, const char *default_name, const struct job_spec *options, struct error *err);
char *submit_directory_of(const char *path);                /* owned by the caller */
char *submit_join(const char *directory, const char *path); /* owned by the caller; path alone where it is absolute */

#endif
