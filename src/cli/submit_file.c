/* Job files (.rad) and scripts with #CARMA lines. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/directives.h"
#include "api/rad.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/units.h"
#include "cli/cli.h"
#include "cli/submit.h"

#define SCRIPT_MAX_BYTES ((size_t)1 << 20)

static const char *directory_of(const char *path, char **owned)
{
    const char *slash = strrchr(path, '/');

    *owned = !slash ? xstrdup(".") : slash == path ? xstrdup("/") : xstrndup(path, (size_t)(slash - path));
    return *owned;
}

/* A job file: what it names is relative to itself. */
static int from_rad(struct job_spec *spec, const char *path, const char *text, size_t length,
                    const struct submit_options *options, struct error *err)
{
    struct submit_options merged = *options;
    CLEANUP(free_ptr) char *directory = NULL;
    CLEANUP(free_ptr) char *summary = NULL;
    CLEANUP(free_ptr) char *capture = NULL;
    int rc = rad_parse(path, text, length, spec, err);

    if (rc)
        return rc;
    directory_of(path, &directory);
    if (!spec->directory && !options->directory)
        merged.directory = directory;
    if (spec->summary_name && !options->summary)
        merged.summary = summary = submit_join(directory, spec->summary_name);
    if (spec->capture_name && !options->capture)
        merged.capture = capture = submit_join(directory, spec->capture_name);
    rc = submit_complete(spec, submit_base_name(path), &merged, err);
    if (rc)
        error_prefix(err, "%s", path);
    return rc;
}

/* "#!INTERPRETER [ARGUMENT]" as the kernel takes it, then the script; running it so needs no execute permission. */
static int script_command(struct job_spec *spec, const char *path, const char *text, struct error *err)
{
    CLEANUP(free_ptr) char *absolute = realpath(path, NULL);
    CLEANUP(free_ptr) char *line = NULL;
    char *argument;

    if (!absolute)
        return error_set(err, errno, "%s: %s", path, strerror(errno));
    if (strncmp(text, "#!", 2) != 0)
        return error_set(err, EINVAL,
                         "%s:1: a script begins with '#!' and its interpreter; a job file's name ends in "
                         ".rad; a program goes after '--'",
                         path);
    line = xstrndup(text + 2, strcspn(text + 2, "\r\n"));
    char *interpreter = line + strspn(line, " \t");
    size_t length = strlen(interpreter);
    while (length && (interpreter[length - 1] == ' ' || interpreter[length - 1] == '\t'))
        interpreter[--length] = '\0';
    if (*interpreter != '/')
        return error_set(err, EINVAL, "%s:1: '#!' needs the whole path of an interpreter, e.g. #!/bin/sh", path);
    argument = interpreter + strcspn(interpreter, " \t");
    if (*argument) {
        *argument++ = '\0';
        argument += strspn(argument, " \t");
    }
    spec_strings_add(&spec->command, interpreter);
    if (*argument)
        spec_strings_add(&spec->command, argument);
    spec_strings_add(&spec->command, absolute);
    return 0;
}

/* One #CARMA line at a time, so that a wrong option is told with its line. directives_parse has seen them all and knows
 * where they end: after `total` words. */
static int parse_directives(const char *path, const char *text, size_t length, size_t total,
                            struct submit_command *found, struct spec_strings *words, struct error *err)
{
    const char *at = text, *end = text + length;

    for (unsigned line = 1; words->count < total && at < end; line++) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        size_t count = (size_t)((stop ? stop : end) - at), before = words->count;
        CLEANUP(free_ptr) char *where = xasprintf("%s:%u", path, line);
        int rc = *at == '#' ? directives_parse(path, at, count, words, err) : 0;
        if (rc == 0 && words->count > before)
            rc = cli_parse_words("submit", where, words->items + before, words->count - before, found, err);
        if (rc)
            return rc;
        at += count + 1;
    }
    return 0;
}

static void overlay(struct submit_options *under, const struct submit_options *over)
{
    under->name = over->name ? over->name : under->name;
    under->directory = over->directory ? over->directory : under->directory;
    under->output = over->output ? over->output : under->output;
    under->error = over->error ? over->error : under->error;
    under->conda = over->conda ? over->conda : under->conda;
    under->summary = over->summary ? over->summary : under->summary;
    under->capture = over->capture ? over->capture : under->capture;
    under->optimizer = over->optimizer ? over->optimizer : under->optimizer;
    under->precision = over->precision ? over->precision : under->precision;
    under->share = over->share ? over->share : under->share;
    under->gpus = over->gpus ? over->gpus : under->gpus;
    under->gpu_memory_bytes = over->gpu_memory_bytes >= 0 ? over->gpu_memory_bytes : under->gpu_memory_bytes;
    under->max_slowdown_permille =
        over->max_slowdown_permille >= 0 ? over->max_slowdown_permille : under->max_slowdown_permille;
    if (over->mps_threads_percent >= 0)
        under->mps_threads_percent = over->mps_threads_percent;
    if (over->mps_memory_limit_bytes >= 0)
        under->mps_memory_limit_bytes = over->mps_memory_limit_bytes;
    if (over->time_limit_ns >= 0)
        under->time_limit_ns = over->time_limit_ns;
    if (over->signal) {
        under->signal = over->signal;
        under->signal_before_ns = over->signal_before_ns;
    }
    under->batch_size = over->batch_size >= 0 ? over->batch_size : under->batch_size;
    under->exclusive |= over->exclusive;
    under->hold |= over->hold;
    under->requeue |= over->requeue;
}

static int from_script(struct job_spec *spec, const char *path, const char *text, size_t length,
                       const struct submit_options *options, struct error *err)
{
    struct submit_command found = {.options = submit_options_none, .in_file = true};
    CLEANUP(spec_strings_release) struct spec_strings all = {0};
    CLEANUP(spec_strings_release) struct spec_strings words = {0};
    int rc;

    job_spec_init(spec);
    rc = script_command(spec, path, text, err);
    if (rc == 0)
        rc = directives_parse(path, text, length, &all, err);
    if (rc == 0)
        rc = parse_directives(path, text, length, all.count, &found, &words, err);
    if (rc)
        return rc;
    overlay(&found.options, options);
    rc = submit_complete(spec, submit_base_name(path), &found.options, err);
    if (rc)
        error_prefix(err, "%s", path);
    return rc;
}

static bool is_job_file(const char *path)
{
    size_t length = strlen(path);

    return length > 4 && strcmp(path + length - 4, ".rad") == 0;
}

int submit_from_file(struct job_spec *spec, const char *path, const struct submit_options *options, struct error *err)
{
    bool job_file = is_job_file(path);
    CLEANUP(free_ptr) char *text = NULL;
    size_t length;
    int rc = file_read(path, job_file ? RAD_MAX_BYTES : SCRIPT_MAX_BYTES, &text, &length, err);

    job_spec_init(spec);
    if (rc == -ENOENT)
        return error_set(err, ENOENT, "%s: no such file (a command goes after '--')", path);
    if (rc == -EFBIG)
        return error_set(err, EFBIG, "%s: too large for a %s: at most %zu KiB", path, job_file ? "job file" : "script",
                         (job_file ? RAD_MAX_BYTES : SCRIPT_MAX_BYTES) / KIB);
    if (rc)
        return rc;
    if (strlen(text) != length)
        return error_set(err, EINVAL, "%s: a binary file: name a script or a .rad file; a program goes after '--'",
                         path);
    return job_file ? from_rad(spec, path, text, length, options, err)
                    : from_script(spec, path, text, length, options, err);
}
