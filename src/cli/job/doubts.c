#include "cli/job/doubts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/later/begin.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/nodetime.h"
#include "base/program.h"
#include "base/script.h"
#include "cli/job/submit.h"
#include "cli/show/term.h"

#define CONDA_LIST_MOST (1 << 20)

__attribute__((format(printf, 2, 3))) static void warn(const struct job_spec *spec, const char *format, ...)
{
    CLEANUP(free_ptr) char *text = NULL;
    CLEANUP(free_ptr) char *safe = NULL;
    CLEANUP(free_ptr) char *name = term_escape(spec->name);
    va_list args;

    va_start(args, format);
    if (vasprintf(&text, format, args) < 0)
        text = NULL;
    va_end(args);
    safe = text ? term_escape(text) : NULL;
    fprintf(stderr, "carma: %s: warning: %s\n", name, safe ? safe : "");
}

static const char *variable(const struct job_spec *spec, const char *name)
{
    size_t length = strlen(name);

    for (size_t i = 0; i < spec->environment.count; i++) {
        const char *entry = spec->environment.items[i];
        if (strncmp(entry, name, length) == 0 && entry[length] == '=')
            return entry + length + 1;
    }
    return NULL;
}

/* The word of the command that is a program which the one at `at` runs: "env X=1 nohup train". 0: none, or it has
 * options, which have a syntax of their own, or another PATH. */
static size_t program_behind(const struct job_spec *spec, size_t at)
{
    static const char *const runners[] = {"env", "nice", "nohup", "setsid", "time"};
    char **words = spec->command.items;
    bool env = strcmp(words[at], "env") == 0, runs = false;
    size_t next = at + 1;

    for (size_t i = 0; i < array_size(runners); i++)
        runs |= strcmp(words[at], runners[i]) == 0;
    while (runs && env && next < spec->command.count && strchr(words[next], '='))
        runs = strncmp(words[next++], "PATH=", 5) != 0;
    return runs && next < spec->command.count && *words[next] != '-' ? next : 0;
}

/* A conda environment changes PATH, so that no name can be looked for in it now. */
static void look_for_program(const struct job_spec *spec)
{
    const char *search = variable(spec, "PATH");
    CLEANUP(free_ptr) char *why = NULL;
    size_t at = 0;

    if (spec->container && spec->conda_environment)
        warn(spec, "its conda environment is the host's: the image of --container has its own programs");
    if (spec->container)
        return;
    if (spec->script) {
        if (!spec->conda_environment && program_check_script(spec->directory, search, spec->script, &why))
            warn(spec, "the script cannot run: %s", why);
        return;
    }
    do {
        const char *program = spec->command.items[at];
        if (!(spec->conda_environment && !strchr(program, '/')) &&
            program_check(spec->directory, search, program, &why)) {
            warn(spec, "'%.200s' cannot run: %s", program, why);
            return;
        }
    } while ((at = program_behind(spec, at)));
}

static bool is_interpreter(const char *name)
{
    static const char *const others[] = {"sh", "bash", "dash", "zsh", "torchrun", "accelerate", "deepspeed"};

    for (size_t i = 0; i < array_size(others); i++)
        if (strcmp(name, others[i]) == 0)
            return true;
    return strncmp(name, "python", 6) == 0;
}

/* The first file of code that an interpreter is given; -c and -m, and what stands behind them, are none. */
static void look_for_code(const struct job_spec *spec)
{
    size_t program = 0;
    bool known;

    for (size_t next; !spec->script && (next = program_behind(spec, program));)
        program = next;
    known = !spec->script && is_interpreter(file_base_name(spec->command.items[program]));

    for (size_t i = program + 1; known && i < spec->command.count; i++) {
        const char *word = spec->command.items[i], *end = strrchr(word, '.');
        CLEANUP(free_ptr) char *path = submit_join(spec->directory, word);
        if (strcmp(word, "-c") == 0 || strcmp(word, "-m") == 0)
            return;
        if (*word == '-' || !end || (strcmp(end, ".py") != 0 && strcmp(end, ".sh") != 0))
            continue;
        if (access(path, R_OK) < 0)
            warn(spec, "'%.200s' cannot be read: %s", word, strerror(errno));
        return;
    }
}

static void look_for_place(const struct job_spec *spec)
{
    if (faccessat(AT_FDCWD, spec->directory, X_OK, AT_EACCESS) < 0)
        warn(spec, "it cannot run in '%.300s': %s: choose another directory with -D", spec->directory, strerror(errno));
}

/* Python takes such lines; a shell takes the carriage return for a part of each line's last word. */
static void look_for_carriage_returns(const struct job_spec *spec)
{
    CLEANUP(free_ptr) char *interpreter = NULL;
    CLEANUP(free_ptr) char *argument = NULL;
    const char *name;
    size_t length;

    if (!spec->script || !strstr(spec->script, "\r\n") ||
        script_interpreter(spec->script, &interpreter, &argument, NULL) < 0)
        return;
    name = file_base_name(argument && strcmp(file_base_name(interpreter), "env") == 0 ? argument : interpreter);
    length = strlen(name);
    if (length >= 2 && strcmp(name + length - 2, "sh") == 0)
        warn(spec, "its lines end in carriage returns, which %s does not take: sed -i 's/\\r$//' %s", name,
             spec->command.items[0]);
}

/* ---- Its outputs ---- */

static bool has_unknown_pattern(const char *path, bool of_array)
{
    for (; (path = strchr(path, '%')); path++)
        if (path[1] != 'j' && path[1] != 'A' && !(of_array && path[1] == 'a'))
            return true;
    return false;
}

static void look_for_directory(const struct job_spec *spec, const char *what, const char *option, const char *path)
{
    CLEANUP(free_ptr) char *directory = submit_directory_of(path);
    struct stat st;

    if (path[strlen(path) - 1] == '/') {
        warn(spec, "its %s '%.300s' is a directory: name a file in it with %s", what, path, option);
        return;
    }
    if (strstr(directory, "%j")) {
        warn(spec, "its %s '%.300s' cannot be made: carma makes no directories, and %%j in one is known too late", what,
             path);
        return;
    }
    if (stat(directory, &st) < 0 && errno == ENOENT)
        warn(spec, "its %s '%.300s' cannot be made: %s: mkdir -p %.300s", what, path, strerror(errno), directory);
    else if (stat(directory, &st) == 0 && !S_ISDIR(st.st_mode))
        warn(spec, "its %s '%.300s' cannot be made: %.300s is not a directory", what, path, directory);
    else if (stat(path, &st) == 0 ? faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) < 0
                                  : errno != ENOENT || faccessat(AT_FDCWD, directory, W_OK | X_OK, AT_EACCESS) < 0)
        warn(spec, "its %s '%.300s' cannot be written: %s: choose another with %s", what, path, strerror(errno),
             option);
    else if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
        warn(spec, "its %s '%.300s' is a directory: name a file in it with %s", what, path, option);
}

static void look_for_output(const struct job_spec *spec, const char *what, const char *option, const char *path)
{
    const char *name = file_base_name(path), *in_directory = path;
    size_t length = strlen(spec->directory);

    if (strncmp(path, spec->directory, length) == 0 && path[length] == '/')
        in_directory = path + length + 1; /* as it was typed, perhaps */
    if (*in_directory == '~' || strchr(in_directory, '$')) {
        warn(spec, "its %s '%.300s' is taken literally: ~ and $ are for the shell, outside of quotes and #CARMA lines",
             what, in_directory);
        return;
    }
    if (has_unknown_pattern(name, spec->array))
        warn(spec, "its %s '%.300s' is taken literally but for %%j, the job's number", what, in_directory);
    look_for_directory(spec, what, option, path);
}

void doubts_tell_shared(const struct job_spec *spec, json_t *paths)
{
    const bool many = spec->array && strpbrk(spec->array, ",-");
    const char *const outputs[] = {spec->output, spec->error};

    for (size_t i = 0; i < array_size(outputs) && outputs[i]; i++) {
        const char *path = outputs[i];
        if (strstr(path, "%j") || strncmp(path, "/dev/", 5) == 0 || (i == 1 && strcmp(path, outputs[0]) == 0))
            continue;
        const json_t *told = strstr(path, "%A") ? NULL : json_object_get(paths, path);
        bool shared = told || (many && !strstr(path, "%a"));
        if (shared && !json_is_true(told))
            warn(spec, "its %s '%.300s' is that of several of these jobs, and each may begin it anew: name it with %%j",
                 i ? "error file" : "output", path);
        json_object_set_new_nocheck(paths, path, json_boolean(shared));
    }
}

/* ---- Its conda environment ---- */

static bool has_entry(const char *directory, const char *name)
{
    CLEANUP(free_ptr) char *path = xasprintf("%s/%s", directory, name);

    return access(path, F_OK) == 0;
}

static bool list_has_entry(const char *directories, const char *name)
{
    CLEANUP(free_ptr) char *copy = xstrdup(directories ? directories : "");

    for (char *rest = copy, *directory; (directory = strsep(&rest, ":"));)
        if (*directory && has_entry(directory, name))
            return true;
    return false;
}

/* conda notes all environments that it makes, wherever they are. */
static bool is_noted(const char *home, const char *name)
{
    CLEANUP(free_ptr) char *path = xasprintf("%s/.conda/environments.txt", home ? home : "");
    CLEANUP(free_ptr) char *text = NULL;
    CLEANUP(free_ptr) char *lines = NULL;
    CLEANUP(free_ptr) char *line = xasprintf("/%s\n", name);
    size_t length;

    if (file_read(path, CONDA_LIST_MOST, &text, &length, NULL) < 0)
        return false;
    lines = xasprintf("%s\n", text);
    return strstr(lines, line);
}

/* Where conda looks by default (its setting envs_dirs). conda init and its modules set CONDA_EXE. */
static void look_for_conda_environment(const struct job_spec *spec)
{
    const char *name = spec->conda_environment, *home = variable(spec, "HOME"), *conda = variable(spec, "CONDA_EXE");
    CLEANUP(free_ptr) char *root = conda && *conda == '/' ? submit_directory_of(conda) : NULL;
    CLEANUP(free_ptr) char *places = NULL;
    CLEANUP(free_ptr) char *why = NULL;

    if (!name || strcmp(name, "base") == 0)
        return;
    if (strchr(name, '/')) {
        CLEANUP(free_ptr) char *path = submit_join(spec->directory, name);
        if (access(path, F_OK) < 0)
            warn(spec, "its conda environment '%.300s': %s", name, strerror(errno));
        return;
    }
    if (!root) {
        if (program_check(spec->directory, variable(spec, "PATH"), "conda", &why))
            warn(spec, "its conda environment '%.200s': conda is not set up in this shell: conda init bash", name);
        return;
    }
    places = xasprintf("%s/../envs:%s%s", root, home ? home : "", home ? "/.conda/envs" : "");
    if (!list_has_entry(places, name) && !list_has_entry(variable(spec, "CONDA_ENVS_PATH"), name) &&
        !list_has_entry(variable(spec, "CONDA_ENVS_DIRS"), name) && !is_noted(home, name))
        warn(spec, "its conda environment '%.200s' is in none of conda's directories: conda env list", name);
}

static void look_for_mps(const struct job_spec *spec)
{
    bool without = spec->exclusive || (spec->share && strcmp(spec->share, "time-slice") == 0);

    if (without && (spec->mps_threads_percent > 0 || spec->mps_memory_limit_bytes > 0))
        warn(spec, "%s counts under MPS alone, which %s does without",
             spec->mps_threads_percent > 0 ? "--mps-threads" : "--mps-memory-limit",
             spec->exclusive ? "--exclusive" : "--share time-slice");
}

/* They say how a model is trained that the job does not name. */
static void look_for_model(const struct job_spec *spec)
{
    if (!spec->hf_config_name && (spec->method || spec->lengths_name || spec->sequence_length >= 0))
        warn(spec, "%s counts with --hf-config alone",
             spec->method         ? "--method"
             : spec->lengths_name ? "--lengths"
                                  : "--sequence-length");
}

/* A time of day is the next one; a date may have passed. A virtual node's clock knows neither. */
static void look_for_begin(const struct job_spec *spec)
{
    int64_t now_ns = nodetime_shown_now_ns(), begin_ns;

    if (spec->begin && nodetime_scale() != 1 && strncmp(spec->begin, "now", 3) != 0)
        warn(spec, "--begin %.40s goes by the clock of the virtual node, which is its own: write now+2hours",
             spec->begin);
    else if (spec->begin && begin_parse(spec->begin, now_ns, &begin_ns, NULL) == 0 && begin_ns < now_ns)
        warn(spec, "--begin %.40s has passed: nothing waits for it", spec->begin);
}

void doubts_tell_command(const struct job_spec *spec)
{
    look_for_place(spec);
    look_for_program(spec);
    look_for_code(spec);
    look_for_carriage_returns(spec);
    look_for_conda_environment(spec);
}

void doubts_tell(const struct job_spec *spec)
{
    doubts_tell_command(spec);
    look_for_model(spec);
    look_for_begin(spec);
    look_for_mps(spec);
    look_for_output(spec, "output", "-o", spec->output);
    if (spec->error)
        look_for_output(spec, "error file", "-e", spec->error);
}
