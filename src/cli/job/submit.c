#include "cli/job/submit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"

#define DEFAULT_OUTPUT "carma-%j.out"

static void replace(char **member, char *value)
{
    free(*member);
    *member = value;
}

char *submit_join(const char *directory, const char *path)
{
    return *path == '/' ? xstrdup(path) : xasprintf("%s/%s", strcmp(directory, "/") == 0 ? "" : directory, path);
}

/* The job runs where it was submitted from, or where it is told to; that must exist now. */
static int complete_directory(struct job_spec *spec, const struct submit_options *options, struct error *err)
{
    const char *wanted = options->directory ? options->directory : spec->directory ? spec->directory : ".";
    char *absolute = realpath(wanted, NULL);
    struct stat st;

    if (absolute && stat(absolute, &st) == 0 && !S_ISDIR(st.st_mode)) {
        free_ptr(&absolute);
        errno = ENOTDIR;
    }
    if (!absolute)
        return error_set(err, errno, "directory '%.200s': %s", wanted, strerror(errno));
    replace(&spec->directory, absolute);
    return 0;
}

static void complete_outputs(struct job_spec *spec, const struct submit_options *options)
{
    const char *output = options->output ? options->output : spec->output ? spec->output : DEFAULT_OUTPUT;
    const char *error = options->error ? options->error : spec->error;

    replace(&spec->output, submit_join(spec->directory, output));
    if (error)
        replace(&spec->error, submit_join(spec->directory, error));
}

/* The daemon opens no path of a user's: what it is to go by is sent. */
static int take_file(const char *what, const char *path, size_t limit, const char *remedy, char **text, char **name,
                     struct error *err)
{
    size_t length;
    int rc;

    if (!path)
        return 0;
    free_ptr(text);
    rc = file_read(path, limit, text, &length, err);
    if (rc == -EFBIG)
        return error_set(err, EFBIG, "%s '%.200s' is too large: at most %zu MiB can be submitted", what, path,
                         limit >> 20);
    if (rc) {
        error_prefix(err, "%s", what);
        return rc;
    }
    if (length == 0)
        return error_set(err, EINVAL, "%s '%.200s' is empty: fill it in or leave it out", what, path);
    if (strlen(*text) != length)
        return error_set(err, EINVAL, "%s '%.200s' is not text: %s", what, path, remedy);
    replace(name, xstrdup(file_base_name(path)));
    return 0;
}

static void complete_environment(struct job_spec *spec)
{
    spec_strings_release(&spec->environment);
    for (char **variable = environ; *variable; variable++) {
        if (strchr(*variable, '=') && strncmp(*variable, SUBMIT_SCRIPT "=", strlen(SUBMIT_SCRIPT "=")) != 0)
            spec_strings_add(&spec->environment, *variable);
    }
}

int submit_complete(struct job_spec *spec, const char *default_name, const struct submit_options *options,
                    struct error *err)
{
    int rc = complete_directory(spec, options, err);

    if (rc == 0)
        rc = take_file("model summary", options->summary, SPEC_MAX_SUMMARY, "give what the framework has printed",
                       &spec->summary, &spec->summary_name, err);
    if (rc == 0)
        rc = take_file("capture", options->capture, SPEC_MAX_CAPTURE, "give what carma.capture has written",
                       &spec->capture, &spec->capture_name, err);
    if (rc)
        return rc;
    complete_outputs(spec, options);
    complete_environment(spec);
    if (options->name || !spec->name)
        replace(&spec->name, xstrndup(options->name ? options->name : default_name,
                                      options->name ? strlen(options->name) : SPEC_MAX_NAME));
    if (options->conda)
        replace(&spec->conda_environment, xstrdup(options->conda));
    if (options->gpus)
        spec->gpus = (uint32_t)options->gpus;
    if (options->gpu_memory_bytes >= 0)
        spec->gpu_memory_bytes = options->gpu_memory_bytes;
    if (options->max_slowdown_permille >= 0)
        spec->max_slowdown_permille = options->max_slowdown_permille;
    if (options->mps_threads_percent >= 0)
        spec->mps_threads_percent = options->mps_threads_percent;
    if (options->mps_memory_limit_bytes >= 0)
        spec->mps_memory_limit_bytes = options->mps_memory_limit_bytes;
    if (options->cpus >= 0)
        spec->cpus = options->cpus;
    if (options->host_memory_bytes >= 0)
        spec->host_memory_bytes = options->host_memory_bytes;
    if (options->time_limit_ns >= 0)
        spec->time_limit_ns = options->time_limit_ns;
    if (options->signal) {
        spec->signal = options->signal;
        spec->signal_before_ns = options->signal_before_ns;
    }
    if (options->batch_size >= 0)
        spec->batch_size = options->batch_size;
    if (options->optimizer)
        replace(&spec->optimizer, xstrdup(options->optimizer));
    if (options->precision)
        replace(&spec->precision, xstrdup(options->precision));
    if (options->share)
        replace(&spec->share, xstrdup(options->share));
    spec->exclusive |= options->exclusive;
    spec->held |= options->hold;
    spec->requeue |= options->requeue;
    return job_spec_check(spec, err);
}

char *submit_directory_of(const char *path)
{
    const char *slash = strrchr(path, '/');

    return !slash ? xstrdup(".") : slash == path ? xstrdup("/") : xstrndup(path, (size_t)(slash - path));
}

int submit_from_command(struct job_spec *spec, char **argv, size_t argc, const struct submit_options *options,
                        struct error *err)
{
    job_spec_init(spec);
    for (size_t i = 0; i < argc; i++)
        spec_strings_add(&spec->command, argv[i]);
    return submit_complete(spec, file_base_name(argv[0]), options, err);
}
