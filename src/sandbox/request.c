#include "sandbox/request.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "base/json/json_read.h"
#include "base/memory.h"
#include "base/units.h"

#define NOBODY 65534

/* They name services outside, which the command shall not even look for. */
static const char *const dropped[] = {
    "SSH_AUTH_SOCK", "SSH_AGENT_PID", "DBUS_SESSION_BUS_ADDRESS", "XDG_RUNTIME_DIR", "DISPLAY",       "WAYLAND_DISPLAY",
    "DOCKER_HOST",   "CARMA_SOCKET",  "CARMA_TOKEN_FILE",         "CARMA_RUN",       "NOTIFY_SOCKET", "LISTEN_FDS"};

static bool leads_outside(const char *variable)
{
    for (size_t i = 0; i < array_size(dropped); i++) {
        size_t length = strlen(dropped[i]);
        if (strncmp(variable, dropped[i], length) == 0 && variable[length] == '=')
            return true;
    }
    return false;
}

static void drop_variables(struct sandbox_request *request)
{
    size_t kept = 0;

    for (size_t i = 0; request->environment[i]; i++) {
        char *text = request->environment[i];
        if (!leads_outside(text))
            request->environment[kept++] = text;
    }
    request->environment[kept] = NULL;
}

static int read_texts(json_t *json, const char *key, char ***texts, struct error *err)
{
    json_t *array = json_object_get(json, key), *item;
    size_t i;

    *texts = xcalloc(json_array_size(array) + 1, sizeof **texts);
    if (array && !json_is_array(array))
        return error_set(err, EINVAL, "the request's '%s' is not a list of texts", key);
    json_array_foreach (array, i, item) {
        if (!json_is_string(item))
            return error_set(err, EINVAL, "the request's '%s' is not a list of texts", key);
        (*texts)[i] = (char *)(uintptr_t)json_string_value(item);
    }
    return 0;
}

static int check(const struct sandbox_request *request, struct error *err)
{
    if (!request->directory || request->directory[0] != '/' || !request->command[0])
        return error_set(err, EINVAL, "the request lacks a 'command' or an absolute 'directory'");
    if (request->time_s <= 0 || request->memory_bytes <= 0 || request->cores <= 0 || request->result_bytes_max <= 0)
        return error_set(err, EINVAL,
                         "the request's limits are not all above 0: time_s, memory_bytes, cores, "
                         "result_bytes_max");
    return 0;
}

int sandbox_request_read(const char *text, size_t length, struct sandbox_request *request, struct error *err)
{
    /* A job's command and environment, and what is hidden from it. */
    static const struct json_bounds bounds = {.values = 32 << 10, .depth = 4, .bytes = 16 << 20};
    json_t *user = NULL;
    json_int_t uid = -1, gid = -1, time_s = 0, memory = 0, cores = 0, result = 0;
    int rc, bare = 0;

    *request = (struct sandbox_request){0};
    if ((rc = json_read(text, length, 0, &bounds, &request->json, err)) < 0) {
        error_prefix(err, "the request");
        return rc;
    }
    if (json_unpack(request->json, "{s:I, s:I, s?o, s?s, s?I, s?I, s?I, s?I, s?s, s?b}", "uid", &uid, "gid", &gid,
                    "user", &user, "directory", &request->directory, "time_s", &time_s, "memory_bytes", &memory,
                    "cores", &cores, "result_bytes_max", &result, "cgroup", &request->cgroup, "without_sandbox",
                    &bare) < 0 ||
        uid < 0 || gid < 0 || uid >= UINT32_MAX || gid >= UINT32_MAX)
        return error_set(err, EINVAL, "the request lacks 'uid' or 'gid', or one of its values has a wrong type");
    request->user = json_string_value(user);
    request->uid = (uid_t)uid;
    request->gid = (gid_t)gid;
    request->time_s = time_s;
    request->memory_bytes = memory;
    request->cores = cores;
    request->result_bytes_max = result;
    request->bare = bare;
    if ((rc = read_texts(request->json, "environment", &request->environment, err)) < 0 ||
        (rc = read_texts(request->json, "command", &request->command, err)) < 0)
        return rc;
    drop_variables(request);
    return check(request, err);
}

void sandbox_request_release(struct sandbox_request *request)
{
    free(request->environment);
    free(request->command);
    json_decref(request->json);
}

void sandbox_request_for_check(struct sandbox_request *request)
{
    static char program[] = "/bin/true";
    const bool root = geteuid() == 0;

    *request = (struct sandbox_request){.uid = root ? NOBODY : geteuid(),
                                        .gid = root ? NOBODY : getegid(),
                                        .user = "nobody",
                                        .directory = "/",
                                        .environment = xcalloc(1, sizeof(char *)),
                                        .command = xcalloc(2, sizeof(char *)),
                                        .time_s = 60,
                                        .memory_bytes = GIB,
                                        .cores = 1,
                                        .result_bytes_max = 1};
    request->command[0] = program;
}
