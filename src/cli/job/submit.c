#include "cli/job/submit.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/told/notify.h"
#include "api/told/notify_file.h"
#include "base/digest.h"
#include "base/file.h"
#include "base/trust/guarded.h"
#include "base/memory.h"
#include "base/program.h"
#include "base/surroundings.h"
#include "cli/cli.h"

#define DEFAULT_OUTPUT   "carma-%j.out"
#define OUTPUT_OF_ARRAYS "carma-%A_%a.out"
#define CODE_MOST        (1 << 20) /* bytes of a program file; a larger one is data */

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
static int complete_directory(struct job_spec *spec, struct error *err)
{
    const char *wanted = spec->directory ? spec->directory : ".";
    struct error why = {{0}};
    CLEANUP(close_fd) int fd = guarded_directory(wanted, O_PATH, &why);
    char *absolute = fd < 0 ? NULL : realpath(wanted, NULL);

    if (!absolute)
        return error_set(err, fd < 0 ? fd : errno, "directory '%.200s': %s", wanted,
                         fd < 0 ? why.text : strerror(errno));
    replace(&spec->directory, absolute);
    return 0;
}

static void complete_outputs(struct job_spec *spec)
{
    const char *usual = spec->array ? OUTPUT_OF_ARRAYS : DEFAULT_OUTPUT;

    replace(&spec->output, submit_join(spec->directory, spec->output ? spec->output : usual));
    if (spec->error)
        replace(&spec->error, submit_join(spec->directory, spec->error));
}

/* The daemon opens no path of a user's: the contents of files are sent. */
static int take_file(const char *what, char **name, size_t limit, const char *remedy, char **text, struct error *err)
{
    const char *path = *name;
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

static int take_capture(struct job_spec *spec, struct error *err)
{
    if (!spec->capture_name || strcmp(spec->capture_name, SPEC_CAPTURE_AUTO) != 0)
        return take_file("capture", &spec->capture_name, SPEC_MAX_CAPTURE, "give the file of carma.capture",
                         &spec->capture, err);
    free_ptr(&spec->capture);
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

/* Of what its user wants to be told of all jobs. */
static int complete_notify(struct job_spec *spec, struct error *err)
{
    CLEANUP(notify_file_release) struct notify_file file = {0};
    const char *home = getenv("HOME");
    struct notify_words said;
    struct stat st;
    bool there;
    int rc;

    if (spec->notify && spec->time_limit_ns < 0 && notify_parse(spec->notify, &said, NULL) == 0 &&
        said.events & (UINT32_C(1) << NOTIFY_TIMEOUT))
        cli_fail("%s: warning: --notify timeout is told of a job with a time limit: say one with --time", spec->name);
    if (spec->notify || !home || stat(home, &st) < 0 || st.st_uid != geteuid())
        return 0; /* HOME may be another user's, as after su or sudo -u */
    rc = notify_file_read(home, &file, &there, err);
    if (rc == 0 && file.events)
        spec->notify = xstrdup(file.events);
    return rc;
}

static void complete_surroundings(struct job_spec *spec)
{
    free(spec->surroundings);
    spec->surroundings = surroundings_of_caller();
}

static bool is_program_file(const char *word)
{
    const char *end = strrchr(word, '.');

    return end && (strcmp(end, ".py") == 0 || strcmp(end, ".sh") == 0);
}

/* The command's program counts, not only its name. One that cannot be read is told by the job itself. */
static void complete_code(struct job_spec *spec)
{
    uint64_t digest = DIGEST_EMPTY;

    for (size_t i = 0; i < spec->command.count; i++) {
        CLEANUP(free_ptr) char *path = NULL;
        CLEANUP(free_ptr) char *text = NULL;
        size_t length;
        if (!is_program_file(spec->command.items[i]))
            continue;
        path = submit_join(spec->directory, spec->command.items[i]);
        if (file_read(path, CODE_MOST, &text, &length, NULL) == 0)
            digest = digest_add(digest, text, length);
    }
    if (digest != DIGEST_EMPTY)
        replace(&spec->code, xasprintf("%016" PRIx64, digest));
}

/* The program may be one that pip installed, whose name says nothing. */
static void complete_python(struct job_spec *spec)
{
    if (!spec->script && spec->command.count)
        spec->python = program_is_python(spec->directory, getenv("PATH"), spec->command.items[0]);
}

int submit_complete(struct job_spec *spec, const char *default_name, const struct job_spec *options, struct error *err)
{
    int rc;

    job_spec_overlay(spec, options);
    if (!spec->name)
        spec->name = xstrndup(default_name, SPEC_MAX_NAME);
    if ((rc = complete_directory(spec, err)) ||
        (rc = take_file("model summary", &spec->summary_name, SPEC_MAX_SUMMARY, "give the framework's output",
                        &spec->summary, err)) ||
        (rc = take_capture(spec, err)) ||
        (rc = take_file("model configuration", &spec->hf_config_name, SPEC_MAX_SUMMARY, "give a config.json",
                        &spec->hf_config, err)) ||
        (rc = take_file("list of lengths", &spec->lengths_name, SPEC_MAX_LENGTHS,
                        "write a number of tokens into each line", &spec->lengths, err)) ||
        (rc = complete_notify(spec, err)))
        return rc;
    complete_outputs(spec);
    complete_environment(spec);
    complete_surroundings(spec);
    complete_code(spec);
    complete_python(spec);
    return job_spec_check(spec, err);
}

char *submit_directory_of(const char *path)
{
    const char *slash = strrchr(path, '/');

    return !slash ? xstrdup(".") : slash == path ? xstrdup("/") : xstrndup(path, (size_t)(slash - path));
}

int submit_from_command(struct job_spec *spec, char **argv, size_t argc, const struct job_spec *options,
                        struct error *err)
{
    job_spec_init(spec);
    if (!*argv[0])
        return error_set(err, EINVAL, "the command is empty: name a program after '--'");
    for (size_t i = 0; i < argc; i++)
        spec_strings_add(&spec->command, argv[i]);
    return submit_complete(spec, file_base_name(argv[0]), options, err);
}
