/* Making job specifications from what `carma submit` is given. */
#ifndef CARMA_CLI_JOB_SUBMIT_H
#define CARMA_CLI_JOB_SUBMIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "api/spec.h"
#include "base/error.h"

/* What the command line says; it goes before what a job file says. NULL, 0, -1 and false: not said. */
struct submit_options {
    const char *name;
    const char *directory;
    const char *output;
    const char *error;
    const char *conda;
    const char *summary;
    const char *capture;
    const char *optimizer;
    const char *precision;
    const char *share;
    int64_t gpus;
    int64_t gpu_memory_bytes;
    int64_t max_slowdown_permille;
    int64_t mps_threads_percent;
    int64_t mps_memory_limit_bytes;
    int64_t cpus;
    int64_t host_memory_bytes;
    int64_t time_limit_ns;
    uint32_t signal;
    int64_t signal_before_ns;
    int64_t batch_size;
    bool exclusive;
    bool hold;
    bool requeue;
};

extern const struct submit_options submit_options_none;

/* The whole command line of `carma submit`. */
struct submit_command {
    struct submit_options options;
    char **files; /* in argv */
    size_t file_count;
    char **command; /* in argv, after "--" */
    size_t command_count;
    bool parsable;
    bool json;
    bool wait;
    bool no_retry;
    bool in_file; /* these are the options of a #CARMA line: not all are allowed there */
};

/* Each inits *spec and leaves it complete and checked, to be released by the caller in any case. Relative paths are
 * relative to the working directory; those that a .rad file names, and the default directory of its job, to the file's
 * own; outputs to the job's directory. */
int submit_from_command(struct job_spec *spec, char **argv, size_t argc, const struct submit_options *options,
                        struct error *err);

/* A .rad file, or a script with #CARMA and #SBATCH lines and what it is called with; "-": a script from the standard input. Errors
 * begin with FILE: or FILE:LINE:. */
int submit_from_file(struct job_spec *spec, const char *path, char **argv, size_t argc, const struct submit_options *options,
                     struct error *err);

#define SUBMIT_STANDARD_INPUT "-"

/* The same of a script's text, which submit_from_file() has read from path. */
int submit_from_script(struct job_spec *spec, const char *path, const char *text, size_t length, char **argv, size_t argc,
                       const struct submit_options *options, struct error *err);

#define SUBMIT_SCRIPT "CARMA_SCRIPT" /* in a job's environment: where the script was that it runs a copy of */

/* Shared by the sources of the command: what the command line says goes first, then what the file has put into *spec,
 * then the defaults. */
int submit_complete(struct job_spec *spec, const char *default_name, const struct submit_options *options,
                    struct error *err);
char *submit_directory_of(const char *path);                /* owned by the caller */
char *submit_join(const char *directory, const char *path); /* owned by the caller; path alone where it is absolute */

#endif
