/* Making job specifications from what `carma submit` is given. */
#ifndef CARMA_CLI_SUBMIT_H
#define CARMA_CLI_SUBMIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "api/spec.h"
#include "base/error.h"

/* What the command line says; it goes before what a job file says. NULL, 0, -1 and false: not said. */
#define SUBMIT_OPTIONS_NONE                                                                                            \
    {                                                                                                                  \
        .gpu_memory_bytes = -1, .batch_size = -1                                                                       \
    }

struct submit_options {
    const char *name;
    const char *directory;
    const char *output;
    const char *error;
    const char *conda;
    const char *summary;
    int64_t gpus;
    int64_t gpu_memory_bytes;
    int64_t batch_size;
    bool exclusive;
    bool hold;
};

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
    bool in_file; /* these are the options of a #CARMA line: not all are allowed there */
};

/* Each inits *spec and leaves it complete and checked, to be released by the caller in any case. A relative --chdir or
 * --model-summary of the command line is relative to the working directory; those that a file names, and the default
 * directory of its job, to the file's own; outputs to the job's directory. */
int submit_from_command(struct job_spec *spec, char **argv, size_t argc, const struct submit_options *options,
                        struct error *err);

/* A .rad file or a script with #CARMA lines; errors begin with FILE: or FILE:LINE:. */
int submit_from_file(struct job_spec *spec, const char *path, const struct submit_options *options, struct error *err);

#endif
