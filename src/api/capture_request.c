#include "api/capture_request.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "api/spec.h"
#include "base/install.h"
#include "base/memory.h"
#include "base/script.h"

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

static int add_script(json_t *command, uint64_t job, const struct job_spec *spec, struct error *err)
{
    CLEANUP(free_ptr) char *interpreter = NULL;
    CLEANUP(free_ptr) char *argument = NULL;
    CLEANUP(free_ptr) char *directory = xasprintf(CAPTURE_COPY_OF_SCRIPT "%" PRIu64, job);
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

static int add_command(json_t *command, uint64_t job, const struct job_spec *spec, struct error *err)
{
    int rc = 0;

    if (spec->conda_environment) {
        add_shell(command, "bash", "-lc", with_conda);
        add(command, spec->conda_environment);
    }
    if (spec->script)
        rc = add_script(command, job, spec, err);
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

char *capture_request_text(const struct capture_request *request, json_t *environment, json_t *command, int time_s,
                           size_t result_bytes)
{
    json_t *json =
        json_pack("{s:I, s:I, s:s?, s:s, s:o, s:o, s:i, s:I, s:i, s:I}", "uid", (json_int_t)request->uid, "gid",
                  (json_int_t)request->gid, "user", request->user, "directory", request->directory, "environment",
                  environment, "command", command, "time_s", time_s, "memory_bytes", (json_int_t)CAPTURE_MEMORY_BYTES,
                  "cores", CAPTURE_CORES, "result_bytes_max", (json_int_t)result_bytes);
    char *text;

    if (request->bare)
        json_object_set_new(json, "without_sandbox", json_true());
    if (request->cgroup)
        json_object_set_new(json, "cgroup", json_string(request->cgroup));
    text = json_dumps(json, JSON_COMPACT);
    json_decref(json);
    return text;
}

int capture_request_make(const struct capture_request *request, uint64_t job, const struct job_spec *spec, char **text,
                         struct error *err)
{
    json_t *command = json_array();
    int rc = add_command(command, job, spec, err);

    *text = NULL;
    if (rc == 0)
        *text = capture_request_text(request, environment_of(spec, request->bare), json_incref(command), CAPTURE_TIME_S,
                                     CAPTURE_OUTPUT_BYTES);
    json_decref(command);
    return rc;
}
