#include "daemon/capture/ask.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <string.h>

#include "base/install.h"
#include "base/memory.h"
#include "base/script.h"
#include "daemon/capture/marks.h"
#include "launch/cgroup.h"

#define RESULT_FD    "3"
#define ARGUMENT_MAX (128 << 10) /* of the kernel's, for one argument: MAX_ARG_STRLEN */

/* $1 directory, $2 name, $3 text of the script; then the command that runs the copy. In the sandbox
 * /tmp is its own; else the copy must go. */
static const char with_script[] =
    "umask 077 && mkdir \"$1\" && printf '%s' \"$3\" >\"$1/$2\" && chmod 500 \"$1/$2\" && directory=$1 && shift 3 &&"
    " \"$@\"\n"
    "status=$?\n"
    "rm -rf \"$directory\"\n"
    "exit $status";

/* $1 the environment; then the command. As a login shell finds conda (launch/shepherd/child.c). */
static const char with_conda[] =
    "exe=conda; command -v conda >/dev/null 2>&1 || exe=${CONDA_EXE:-conda}\n"
    "eval \"$(\"$exe\" shell.bash hook)\" && conda activate \"$1\" && shift && exec \"$@\"";

static void add(json_t *list, const char *text)
{
    json_array_append_new(list, json_string(text));
}

static void add_shell(json_t *command, const char *shell, const char *option, const char *script)
{
    add(command, shell);
    add(command, option);
    add(command, script);
    add(command, "carma-capture");
}

static int add_script(json_t *command, const struct job_view *view, const struct job_spec *spec, struct error *err)
{
    CLEANUP(free_ptr) char *interpreter = NULL;
    CLEANUP(free_ptr) char *argument = NULL;
    CLEANUP(free_ptr) char *directory = xasprintf(COPY_OF_SCRIPT "%" PRIu64, view->id);
    CLEANUP(free_ptr) char *copy = NULL;
    const char *typed = spec->command.items[0], *slash = strrchr(typed, '/'), *name = slash ? slash + 1 : typed;

    if (strlen(spec->script) >= ARGUMENT_MAX)
        return error_set(err, EINVAL, "its script is longer than %d KiB", ARGUMENT_MAX >> 10);
    if (script_interpreter(spec->script, &interpreter, &argument, err) != 0)
        return -EINVAL;
    name = *name && *name != '-' && *name != '.' ? name : "script";
    copy = xasprintf("%s/%s", directory, name);
    add_shell(command, "/bin/sh", "-c", with_script);
    add(command, directory);
    add(command, name);
    add(command, spec->script);
    add(command, interpreter);
    if (argument)
        add(command, argument);
    add(command, copy);
    return 0;
}

static int add_command(json_t *command, const struct job_view *view, const struct job_spec *spec, struct error *err)
{
    int rc = 0;

    if (spec->conda_environment) {
        add_shell(command, "bash", "-lc", with_conda);
        add(command, spec->conda_environment);
    }
    if (spec->script)
        rc = add_script(command, view, spec, err);
    for (size_t i = spec->script ? 1 : 0; i < spec->command.count; i++)
        add(command, spec->command.items[i]);
    return rc;
}

static json_t *environment_of(const struct job_spec *spec, bool bare)
{
    static const char gpus[] = "CUDA_VISIBLE_DEVICES=";
    static const char path[] = "PYTHONPATH=";
    CLEANUP(free_ptr) char *ours = install_path("share/carma/python/carma_auto");
    CLEANUP(free_ptr) char *variable = xasprintf("%s%s", path, ours);
    json_t *list = json_array();

    for (size_t i = 0; i < spec->environment.count; i++) {
        const char *item = spec->environment.items[i];
        if (bare && strncmp(item, gpus, strlen(gpus)) == 0)
            continue;
        if (strncmp(item, path, strlen(path)) != 0) {
            add(list, item);
        } else if (item[strlen(path)]) {
            free(variable);
            variable = xasprintf("%s%s:%s", path, ours, item + strlen(path));
        }
    }
    add(list, variable);
    if (bare)
        add(list, gpus); /* they are there */
    add(list, "CARMA_AUTO_CAPTURE_FD=" RESULT_FD);
    free(variable);
    variable = xasprintf("CARMA_AUTO_CAPTURE_GPUS=%" PRIu32, spec->gpus);
    add(list, variable);
    return list;
}

/* The common part of both requests. Takes over the two lists. */
static char *request_text(const struct daemon *daemon, const struct job_view *view, json_t *environment,
                          json_t *command, unsigned time_s, size_t result_bytes, bool bare)
{
    const struct job_spec spec = job_view_spec(view);
    const struct cgroup_place *place = cgroup_place();
    CLEANUP(free_ptr) char *group = place->base ? cgroup_locate(place->mounts, place->base) : NULL;
    json_t *request = json_pack(
        "{s:I, s:I, s:s?, s:s, s:o, s:o, s:i, s:I, s:i, s:[s, s], s:I}", "uid", (json_int_t)view->wants->uid, "gid",
        (json_int_t)(view->gid >= 0 ? view->gid : view->wants->uid), "user", view->gid >= 0 ? view->user : NULL,
        "directory", spec.directory, "environment", environment, "command", command, "time_s", (int)time_s,
        "memory_bytes", (json_int_t)CAPTURE_MEMORY_BYTES, "cores", CAPTURE_CORES, "hidden",
        daemon->config.state_directory, daemon->config.socket, "result_bytes_max", (json_int_t)result_bytes);
    char *text;

    if (bare)
        json_object_set_new(request, "without_sandbox", json_true());
    if (group)
        json_object_set_new(request, "cgroup", json_string(group));
    text = json_dumps(request, JSON_COMPACT);
    json_decref(request);
    return text;
}

int capture_ask(const struct daemon *daemon, const struct job_view *view, bool bare, char **text, struct error *err)
{
    const struct job_spec spec = job_view_spec(view);
    json_t *command = json_array();
    int rc = add_command(command, view, &spec, err);

    *text = NULL;
    if (rc == 0)
        *text = request_text(daemon, view, environment_of(&spec, bare), json_incref(command), CAPTURE_TIME_S,
                             CAPTURE_OUTPUT_BYTES, bare);
    json_decref(command);
    return rc;
}

char *capture_ask_look(const struct daemon *daemon, const struct job_view *view, bool bare, const json_t *marks)
{
    json_t *command = json_array(), *environment = json_pack("[s, s]", "PATH=/usr/bin:/bin", "LC_ALL=C");

    add_shell(command, "/bin/sh", "-c", look_script());
    for (size_t i = 0; i < json_array_size(marks); i++)
        add(command, marks_path(marks, i));
    return request_text(daemon, view, environment, command, LOOK_TIME_S, LOOK_OUTPUT_BYTES, bare);
}
