/* Scripts: the text that is sent, and the options in their #CARMA and #SBATCH lines. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/directives.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/script.h"
#include "base/strbuf.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/job/sbatch.h"
#include "cli/job/submit.h"
#include "cli/show/term.h"

#define OWN_MARKER    "#CARMA"
#define SBATCH_MARKER "#SBATCH"

/* The options that stand behind one marker. */
struct found {
    struct submit_command command;
    struct spec_strings words; /* as they stand there; the options point into them, or into those of carma */
    struct spec_strings own;   /* of #SBATCH lines: what they are in carma's words */
    struct spec_strings written; /* for each of those, what the line says */
};

static void found_release(struct found *found)
{
    spec_strings_release(&found->words);
    spec_strings_release(&found->own);
    spec_strings_release(&found->written);
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
           (strncmp(file_base_name(interpreter), "python", 6) == 0 ||
            (strcmp(file_base_name(interpreter), "env") == 0 && argument && strstr(argument, "python")));
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
    directory = submit_directory_of(absolute);
    search = xasprintf("%s%s%s", directory, others && *others ? ":" : "", others ? others : "");
    set_variable(&spec->environment, "PYTHONPATH", search);
}

static int take_line(struct found *found, const char *where, size_t before, struct spec_strings *ignored, struct error *err)
{
    struct spec_strings *words = &found->words, *own = &found->own;
    size_t first = own->count;
    int rc = 0;

    if (!ignored)
        return cli_parse_words("submit", &submit_argp, where, words->items + before, words->count - before,
                               &found->command, err);
    sbatch_translate(words->items + before, words->count - before, own, &found->written, ignored);
    for (size_t i = first; i < own->count && rc == 0; i++) {
        CLEANUP(free_ptr) char *directive = xasprintf("%s: " SBATCH_MARKER " %.80s", where, found->written.items[i]);
        rc = cli_parse_words("submit", &submit_argp, directive, own->items + i, 1, &found->command, err);
    }
    return rc;
}

/* One line at a time, so that a wrong option is told with its line. The first pass finds where they end: after `all` words.
 * `ignored`: of #SBATCH lines, the options without a meaning here; NULL: the lines are carma's. */
static int find_options(struct found *found, const char *marker, const char *path, const char *text, size_t length,
                        struct spec_strings *ignored, struct error *err)
{
    CLEANUP(spec_strings_release) struct spec_strings all = {0};
    struct spec_strings *words = &found->words;
    const char *at = text, *end = text + length;
    int rc = directives_parse(marker, path, text, length, &all, err);

    *found = (struct found){.command = {.options = submit_options_none, .in_file = true}};
    for (unsigned line = 1; rc == 0 && words->count < all.count && at < end; line++) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        size_t count = (size_t)((stop ? stop : end) - at), before = words->count;
        CLEANUP(free_ptr) char *where = xasprintf("%s:%u", path, line);
        if (*at == '#')
            rc = directives_parse(marker, path, at, count, words, err);
        if (rc == 0 && words->count > before)
            rc = take_line(found, where, before, ignored, err);
        at += count + 1;
    }
    return rc;
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
    if (over->cpus >= 0)
        under->cpus = over->cpus;
    if (over->host_memory_bytes >= 0)
        under->host_memory_bytes = over->host_memory_bytes;
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

/* On stderr, as the script is accepted all the same. */
static void warn_of_ignored(const char *path, const struct spec_strings *ignored)
{
    CLEANUP(strbuf_release) struct strbuf list = {0};
    CLEANUP(free_ptr) char *safe = NULL;

    for (size_t i = 0; i < ignored->count; i++)
        strbuf_printf(&list, "%s%s", i ? ", " : "", ignored->items[i]);
    if (!ignored->count)
        return;
    safe = term_escape(list.text);
    fprintf(stderr, "carma: %s: warning: ignored in its #SBATCH lines, as it has no meaning here: %s\n", path, safe);
}

/* Slurm's patterns of output files become paths of carma once the job's name is known. */
static char *translate_path(const char **path, const char *of_sbatch, const char *option, const char *name,
                            struct spec_strings *ignored)
{
    char *translated = *path && *path == of_sbatch ? sbatch_path(of_sbatch, name, option, ignored) : NULL;

    if (translated)
        *path = translated;
    return translated;
}

int submit_from_script(struct job_spec *spec, const char *path, const char *text, size_t length, char **argv, size_t argc,
                       const struct submit_options *options, struct error *err)
{
    bool by_pipe = strcmp(path, SUBMIT_STANDARD_INPUT) == 0;
    const char *name = by_pipe ? "script" : file_base_name(path);
    CLEANUP(found_release) struct found own = {0};
    CLEANUP(found_release) struct found sbatch = {0};
    CLEANUP(spec_strings_release) struct spec_strings ignored = {0};
    CLEANUP(free_ptr) char *output = NULL;
    CLEANUP(free_ptr) char *error = NULL;
    struct submit_options merged;
    const char *final;
    int rc;

    job_spec_init(spec);
    if ((rc = take_script(spec, path, text, argv, argc, err)) ||
        (rc = find_options(&sbatch, SBATCH_MARKER, path, text, length, &ignored, err)) ||
        (rc = find_options(&own, OWN_MARKER, path, text, length, NULL, err)))
        return rc;
    merged = sbatch.command.options;
    overlay(&merged, &own.command.options);
    overlay(&merged, options);
    final = merged.name ? merged.name : name;
    output = translate_path(&merged.output, sbatch.command.options.output, "--output", final, &ignored);
    error = translate_path(&merged.error, sbatch.command.options.error, "--error", final, &ignored);
    rc = submit_complete(spec, name, &merged, err);
    if (rc) {
        error_prefix(err, "%s", path);
        return rc;
    }
    warn_of_ignored(path, &ignored);
    if (!by_pipe)
        tell_place(spec, path);
    return 0;
}
