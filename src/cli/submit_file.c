/* Job files (.rad) and scripts with #CARMA lines. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/directives.h"
#include "api/rad.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/script.h"
#include "base/units.h"
#include "cli/cli.h"
#include "cli/submit.h"

#define SCRIPT_MAX_BYTES ((size_t)SPEC_MAX_SCRIPT)
#define STANDARD_INPUT "-"

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

/* The script is sent: its text now is what every run of the job executes. Its name stands for it in the command. */
static int take_script(struct job_spec *spec, const char *path, const char *text, char **argv, size_t argc,
                       struct error *err)
{
    CLEANUP(free_ptr) char *interpreter = NULL;
    CLEANUP(free_ptr) char *argument = NULL;
    int rc = script_interpreter(text, &interpreter, &argument, err);

    if (rc) {
        error_prefix(err, "%s:1", path);
        return rc;
    }
    spec->script = xstrdup(text);
    spec_strings_add(&spec->command, path);
    for (size_t i = 0; i < argc; i++)
        spec_strings_add(&spec->command, argv[i]);
    return 0;
}

static void set_variable(struct spec_strings *environment, const char *name, const char *value)
{
    CLEANUP(free_ptr) char *entry = xasprintf("%s=%s", name, value);
    size_t length = strlen(name) + 1;

    for (size_t i = 0; i < environment->count; i++) {
        if (strncmp(environment->items[i], entry, length) != 0)
            continue;
        free(environment->items[i]);
        environment->items[i] = steal_ptr(&entry);
        return;
    }
    spec_strings_add(environment, entry);
}

static bool is_for_python(const char *text)
{
    CLEANUP(free_ptr) char *interpreter = NULL;
    CLEANUP(free_ptr) char *argument = NULL;

    return script_interpreter(text, &interpreter, &argument, NULL) == 0 &&
           (strncmp(submit_base_name(interpreter), "python", 6) == 0 ||
            (strcmp(submit_base_name(interpreter), "env") == 0 && argument && strstr(argument, "python")));
}

/* What lies beside the script is found from its copy: by the variable, and by Python, which looks beside the script for what
 * it imports. */
static void tell_place(struct job_spec *spec, const char *path)
{
    CLEANUP(free_ptr) char *absolute = realpath(path, NULL);
    CLEANUP(free_ptr) char *directory = NULL;
    CLEANUP(free_ptr) char *search = NULL;
    const char *others = getenv("PYTHONPATH");

    if (!absolute) /* it came by a pipe */
        return;
    set_variable(&spec->environment, SUBMIT_SCRIPT, absolute);
    if (!is_for_python(spec->script))
        return;
    directory_of(absolute, &directory);
    search = xasprintf("%s%s%s", directory, others && *others ? ":" : "", others ? others : "");
    set_variable(&spec->environment, "PYTHONPATH", search);
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

static int from_script(struct job_spec *spec, const char *path, const char *text, size_t length, char **argv, size_t argc,
                       const struct submit_options *options, struct error *err)
{
    struct submit_command found = {.options = submit_options_none, .in_file = true};
    CLEANUP(spec_strings_release) struct spec_strings all = {0};
    CLEANUP(spec_strings_release) struct spec_strings words = {0};
    bool by_pipe = strcmp(path, STANDARD_INPUT) == 0;
    int rc;

    job_spec_init(spec);
    rc = take_script(spec, path, text, argv, argc, err);
    if (rc == 0)
        rc = directives_parse(path, text, length, &all, err);
    if (rc == 0)
        rc = parse_directives(path, text, length, all.count, &found, &words, err);
    if (rc)
        return rc;
    overlay(&found.options, options);
    rc = submit_complete(spec, by_pipe ? "script" : submit_base_name(path), &found.options, err);
    if (rc)
        error_prefix(err, "%s", path);
    else if (!by_pipe)
        tell_place(spec, path);
    return rc;
}

static bool is_job_file(const char *path)
{
    size_t length = strlen(path);

    return length > 4 && strcmp(path + length - 4, ".rad") == 0;
}

int submit_from_file(struct job_spec *spec, const char *path, char **argv, size_t argc, const struct submit_options *options,
                     struct error *err)
{
    bool job_file = is_job_file(path), by_pipe = strcmp(path, STANDARD_INPUT) == 0;
    CLEANUP(free_ptr) char *text = NULL;
    size_t length, most = job_file ? RAD_MAX_BYTES : SCRIPT_MAX_BYTES;
    int rc;

    job_spec_init(spec);
    if (job_file && argc)
        return error_set(err, EINVAL, "%s: a job file takes no arguments: leave out what stands after '--'", path);
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
                    : from_script(spec, path, text, length, argv, argc, options, err);
}
