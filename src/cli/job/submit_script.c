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
#include "cli/job/missed.h"
#include "cli/job/sbatch.h"
#include "cli/job/submit.h"
#include "cli/show/term.h"

#define OWN_MARKER    "#CARMA"
#define SBATCH_MARKER "#SBATCH"

/* The options that stand behind one marker. */
struct found {
    struct submit_command command;
    struct spec_strings words;   /* as they stand there */
    struct spec_strings own;     /* of #SBATCH lines: their meaning in carma's words */
    struct spec_strings written; /* for each of those, the line's words */
};

static void found_release(struct found *found)
{
    job_spec_release(&found->command.options);
    spec_strings_release(&found->words);
    spec_strings_release(&found->own);
    spec_strings_release(&found->written);
}

/* Where its name says what it is, the whole command that runs it without a first line. */
static int tell_interpreter(const char *path, const char *text, int rc, struct error *err)
{
    const char *end = strrchr(path, '.');
    const char *by = !end ? NULL : strcmp(end, ".py") == 0 ? "python3" : strcmp(end, ".sh") == 0 ? "sh" : NULL;
    struct error why = *err;

    return !by || strncmp(text, "#!", 2) == 0
               ? rc
               : error_set(err, EINVAL, "%s, as in: carma submit -- %s %s", why.text, by, path);
}

/* The script is sent: every run of the job executes its text of now. Its name stands for it in the command. */
static int take_script(struct job_spec *spec, const char *path, const char *text, char **argv, size_t argc,
                       struct error *err)
{
    CLEANUP(free_ptr) char *interpreter = NULL;
    CLEANUP(free_ptr) char *argument = NULL;
    int rc = script_interpreter(text, &interpreter, &argument, err);

    if (rc) {
        error_prefix(err, "%s:1", path);
        return tell_interpreter(path, text, rc, err);
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

/* Files beside the script are found from its copy: by the variable, and by Python, which looks beside the script for
 * its imports. */
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

static int take_line(struct found *found, const char *where, size_t before, struct spec_strings *ignored,
                     struct error *err)
{
    struct spec_strings *words = &found->words, *own = &found->own;
    size_t first = own->count;
    const char *name, *remedy;
    int rc = 0;

    if (!ignored)
        return cli_parse_words("submit", &submit_argp, where, words->items + before, words->count - before,
                               &found->command, err);
    name = sbatch_refused(words->items + before, words->count - before, &remedy);
    if (name)
        return error_set(err, EINVAL, "%s: " SBATCH_MARKER " %s%s: %s", where, strstr(name, "job") ? "" : "--", name,
                         remedy);
    sbatch_translate(words->items + before, words->count - before, own, &found->written, ignored);
    for (size_t i = first; i < own->count && rc == 0; i++) {
        CLEANUP(free_ptr) char *directive = xasprintf("%s: " SBATCH_MARKER " %.80s", where, found->written.items[i]);
        rc = cli_parse_words("submit", &submit_argp, directive, own->items + i, 1, &found->command, err);
    }
    return rc;
}

/* One line at a time, so that a wrong option is told with its line. The first pass finds where they end: after `all`
 * words. `ignored`: of #SBATCH lines, the options without a meaning here; NULL: the lines are carma's. */
static int find_options(struct found *found, const char *marker, const char *path, const char *text, size_t length,
                        struct spec_strings *ignored, struct error *err)
{
    CLEANUP(spec_strings_release) struct spec_strings all = {0};
    struct spec_strings *words = &found->words;
    const char *at = text, *end = text + length;
    int rc = directives_parse(marker, path, text, length, &all, err);

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

/* On stderr, because the script is accepted. */
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
static void translate_path(char **path, const char *own, const char *of_command_line, const char *name)
{
    char *translated = *path && !own && !of_command_line ? sbatch_path(*path, name) : NULL;

    if (translated) {
        free(*path);
        *path = translated;
    }
}

int submit_from_script(struct job_spec *spec, const char *path, const char *text, size_t length, char **argv,
                       size_t argc, const struct job_spec *options, struct error *err)
{
    bool by_pipe = strcmp(path, SUBMIT_STANDARD_INPUT) == 0;
    const char *final, *name = by_pipe ? "script" : file_base_name(path);
    CLEANUP(found_release) struct found own = {.command.in_file = true};
    CLEANUP(found_release) struct found sbatch = {.command.in_file = true};
    CLEANUP(spec_strings_release) struct spec_strings ignored = {0};
    struct job_spec *of_sbatch = &sbatch.command.options, *of_own = &own.command.options;
    int rc;

    job_spec_init_empty(of_sbatch);
    job_spec_init_empty(of_own);
    job_spec_init(spec);
    if ((rc = take_script(spec, path, text, argv, argc, err)) ||
        (rc = find_options(&sbatch, SBATCH_MARKER, path, text, length, &ignored, err)) ||
        (rc = find_options(&own, OWN_MARKER, path, text, length, NULL, err)))
        return rc;
    final = options->name ? options->name : of_own->name ? of_own->name : of_sbatch->name ? of_sbatch->name : name;
    translate_path(&of_sbatch->output, of_own->output, options->output, final);
    translate_path(&of_sbatch->error, of_own->error, options->error, final);
    job_spec_overlay(spec, of_sbatch);
    job_spec_overlay(spec, of_own);
    rc = submit_complete(spec, name, options, err);
    if (rc) {
        error_prefix(err, "%s", path);
        return rc;
    }
    warn_of_ignored(path, &ignored);
    missed_tell(path, text, length);
    if (!by_pipe)
        tell_place(spec, path);
    return 0;
}
