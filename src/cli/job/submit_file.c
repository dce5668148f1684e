/* Job files (.rad) and scripts, by their names. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/rad.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/units.h"
#include "cli/job/submit.h"

#define SCRIPT_MAX_BYTES ((size_t)SPEC_MAX_SCRIPT)

static void join(const char *directory, char **path)
{
    char *whole = *path ? submit_join(directory, *path) : xstrdup(directory);

    free(*path);
    *path = whole;
}

/* A job file: the paths in it are relative to itself, and its outputs to the job's directory. */
static int from_rad(struct job_spec *spec, const char *path, const char *text, size_t length,
                    const struct job_spec *options, struct error *err)
{
    CLEANUP(free_ptr) char *directory = NULL;
    int rc = rad_parse(path, text, length, spec, err);

    if (rc)
        return rc;
    directory = submit_directory_of(path);
    join(directory, &spec->directory);
    if (spec->summary_name)
        join(directory, &spec->summary_name);
    if (spec->capture_name && strcmp(spec->capture_name, SPEC_CAPTURE_AUTO) != 0)
        join(directory, &spec->capture_name);
    if (spec->hf_config_name)
        join(directory, &spec->hf_config_name);
    if (spec->lengths_name)
        join(directory, &spec->lengths_name);
    rc = submit_complete(spec, file_base_name(path), options, err);
    if (rc)
        error_prefix(err, "%s", path);
    return rc;
}

static bool is_job_file(const char *path)
{
    size_t length = strlen(path);

    return length > 4 && strcmp(path + length - 4, ".rad") == 0;
}

int submit_from_file(struct job_spec *spec, const char *path, char **argv, size_t argc, const struct job_spec *options,
                     struct error *err)
{
    bool job_file = is_job_file(path), by_pipe = strcmp(path, SUBMIT_STANDARD_INPUT) == 0;
    CLEANUP(free_ptr) char *text = NULL;
    size_t length, most = job_file ? RAD_MAX_BYTES : SCRIPT_MAX_BYTES;
    int rc;

    job_spec_init(spec);
    if (job_file && argc)
        return error_set(err, EINVAL, "%s: a job file takes no arguments: leave out the words after '--'", path);
    rc = by_pipe ? file_read_fd(STDIN_FILENO, "standard input", most, &text, &length, err)
                 : file_read(path, most, &text, &length, err);
    if (rc == -ENOENT)
        return error_set(err, ENOENT, "%s: no such file (a command goes after '--')", path);
    if (rc == -EFBIG)
        return error_set(err, EFBIG, "%s: too large for a %s: at most %zu KiB", path, job_file ? "job file" : "script",
                         most / KIB);
    if (rc)
        return rc;
    if (strlen(text) != length)
        return error_set(err, EINVAL, "%s: a binary file: name a script or a .rad file; a program goes after '--'",
                         path);
    return job_file ? from_rad(spec, path, text, length, options, err)
                    : submit_from_script(spec, path, text, length, argv, argc, options, err);
}
