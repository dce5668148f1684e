#include "launch/request.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/memory.h"
#include "base/units.h"
#include "launch/cgroup.h"

/* The text is a row of "key=value" strings, each with its NUL. Both sides come from one installation, so it has no
 * version; a key that the other side does not know is an error. */

static void put(struct strbuf *text, const char *key, const char *value)
{
    if (!value)
        return;
    strbuf_puts(text, key);
    strbuf_append(text, "=", 1);
    strbuf_append(text, value, strlen(value) + 1);
}

static void put_number(struct strbuf *text, const char *key, int64_t value)
{
    strbuf_printf(text, "%s=%" PRId64, key, value);
    strbuf_append(text, "", 1);
}

/* The limits as CUDA reads them. Devices are counted among those that the job sees; sizes go by whole MiB, upwards. */
static void put_mps(struct strbuf *text, const struct launch_request *launch)
{
    put(text, "mps_log_directory", launch->mps_log_directory);
    if (launch->mps_threads_percent)
        put_number(text, "mps_threads", launch->mps_threads_percent);
    if (launch->mps_memory_limit_bytes >= 0) {
        CLEANUP(strbuf_release) struct strbuf limit = {0};
        uint32_t device = 0;
        for (const char *at = launch->gpu_uuids; at; at = strchr(at, ','), at = at ? at + 1 : NULL, device++)
            strbuf_printf(&limit, "%s%" PRIu32 "=%" PRId64 "M", device ? "," : "", device,
                          (launch->mps_memory_limit_bytes + MIB - 1) / MIB);
        put(text, "mps_memory_limit", limit.text);
    }
}

void request_print(const struct launch_request *launch, const char *mps_pipe_directory, struct strbuf *text)
{
    CLEANUP(free_ptr) char *progress = launch->no_progress ? NULL : launch_progress_file(launch->script_directory);

    put(text, "run_directory", launch->run_directory);
    put_number(text, "job", (int64_t)launch->job);
    put_number(text, "launch", launch->launch);
    put_number(text, "lease", launch->lease);
    put_number(text, "uid", launch->uid);
    put_number(text, "gid", launch->gid);
    put(text, "user", launch->user);
    put(text, "gpu_uuids", launch->gpu_uuids);
    put(text, "indices", launch->indices);
    put(text, "devices", launch->devices);
    put_number(text, "gpu_memory_bytes", launch->gpu_memory_bytes);
    put_number(text, "gpu_total_bytes", launch->gpu_total_bytes);
    put(text, "mps_pipe_directory", mps_pipe_directory);
    if (launch->mps_pipe_directory)
        put_mps(text, launch);
    put(text, "progress_file", progress);
    put(text, "notify_socket", launch->notify_socket);
    put_number(text, "memory_max", launch->limits.memory_bytes);
    put_number(text, "pids_max", launch->limits.pids);
    put_number(text, "cpus", launch->limits.cpus);
    put_number(text, "cpu_weight", launch->limits.cpu_weight);
    put_number(text, "grace_ns", launch->grace_ns);
    put_number(text, "start_timeout_ns", launch->start_timeout_ns);
    put_number(text, "time_limit_ns", launch->time_limit_ns);
    put_number(text, "signal", launch->signal);
    put_number(text, "signal_before_ns", launch->signal_before_ns);
    put_number(text, "requeue", launch->requeue);
    put(text, "name", launch->name);
    put(text, "directory", launch->directory);
    put(text, "output", launch->output);
    put(text, "error", launch->error);
    put(text, "conda_environment", launch->conda_environment);
    put(text, "surroundings", launch->surroundings);
    put(text, "script", launch->script);
    put(text, "script_directory", launch->script ? launch->script_directory : NULL);
    for (size_t i = 0; i < launch->argument_count; i++)
        put(text, "argument", launch->arguments[i]);
    for (size_t i = 0; i < launch->environment_count; i++)
        put(text, "environment", launch->environment[i]);
}

struct parser {
    struct request *request;
    size_t argument_capacity;
    size_t environment_capacity;
};

static void list_add(char ***items, size_t *count, size_t *capacity, char *value)
{
    array_reserve(*items, *capacity, *count + 2);
    (*items)[(*count)++] = value;
    (*items)[*count] = NULL;
}

static bool take(struct parser *parser, const char *key, char *value)
{
    struct request *request = parser->request;
    const struct {
        const char *key;
        const char **text;
    } texts[] = {
        {"run_directory", &request->run_directory},
        {"user", &request->user},
        {"gpu_uuids", &request->gpu_uuids},
        {"indices", &request->indices},
        {"devices", &request->devices},
        {"mps_pipe_directory", &request->mps_pipe_directory},
        {"mps_log_directory", &request->mps_log_directory},
        {"mps_threads", &request->mps_threads},
        {"mps_memory_limit", &request->mps_memory_limit},
        {"progress_file", &request->progress_file},
        {"notify_socket", &request->notify_socket},
        {"name", &request->name},
        {"directory", &request->directory},
        {"output", &request->output},
        {"error", &request->error},
        {"conda_environment", &request->conda_environment},
        {"surroundings", &request->surroundings},
        {"script", &request->script},
        {"script_directory", &request->script_directory},
    };

    if (strcmp(key, "argument") == 0) {
        list_add(&request->arguments, &request->argument_count, &parser->argument_capacity, value);
        return true;
    }
    if (strcmp(key, "environment") == 0) {
        list_add(&request->environment, &request->environment_count, &parser->environment_capacity, value);
        return true;
    }
    for (size_t i = 0; i < array_size(texts); i++) {
        if (strcmp(key, texts[i].key) == 0) {
            *texts[i].text = value;
            return true;
        }
    }
    if (strcmp(key, "job") == 0)
        request->job = strtoull(value, NULL, 10);
    else if (strcmp(key, "launch") == 0)
        request->launch = (uint32_t)strtoul(value, NULL, 10);
    else if (strcmp(key, "uid") == 0)
        request->uid = (uid_t)strtoul(value, NULL, 10);
    else if (strcmp(key, "gid") == 0)
        request->gid = (gid_t)strtoul(value, NULL, 10);
    else if (strcmp(key, "gpu_memory_bytes") == 0)
        request->gpu_memory_bytes = strtoll(value, NULL, 10);
    else if (strcmp(key, "gpu_total_bytes") == 0)
        request->gpu_total_bytes = strtoll(value, NULL, 10);
    else if (strcmp(key, "memory_max") == 0)
        request->limits.memory_bytes = strtoll(value, NULL, 10);
    else if (strcmp(key, "pids_max") == 0)
        request->limits.pids = strtoll(value, NULL, 10);
    else if (strcmp(key, "cpus") == 0)
        request->limits.cpus = strtoll(value, NULL, 10);
    else if (strcmp(key, "cpu_weight") == 0)
        request->limits.cpu_weight = strtoll(value, NULL, 10);
    else if (strcmp(key, "grace_ns") == 0)
        request->grace_ns = strtoll(value, NULL, 10);
    else if (strcmp(key, "start_timeout_ns") == 0)
        request->start_timeout_ns = strtoll(value, NULL, 10);
    else if (strcmp(key, "time_limit_ns") == 0)
        request->time_limit_ns = strtoll(value, NULL, 10);
    else if (strcmp(key, "signal") == 0)
        request->signal = (int)strtol(value, NULL, 10);
    else if (strcmp(key, "signal_before_ns") == 0)
        request->signal_before_ns = strtoll(value, NULL, 10);
    else if (strcmp(key, "lease") == 0)
        request->lease = strcmp(value, "0") != 0;
    else if (strcmp(key, "requeue") == 0)
        request->requeue = strcmp(value, "0") != 0;
    else
        return false;
    return true;
}

int request_parse(char *text, size_t length, struct request *request, struct error *err)
{
    struct parser parser = {.request = request};

    *request = (struct request){0};
    for (size_t at = 0; at < length; at += strlen(text + at) + 1) {
        char *key = text + at, *equals = strchr(key, '=');
        bool known;
        if (!equals)
            return error_set(err, EINVAL, "the launch request has an entry without a value: '%.60s'", key);
        *equals = '\0';
        known = take(&parser, key, equals + 1);
        if (!known)
            return error_set(err, EINVAL,
                             "the launch request has an unknown entry '%.60s': daemon and shepherd "
                             "are not of one installation",
                             key);
        *equals = '=';
    }
    if (!request->run_directory || !request->gpu_uuids || !request->mps_pipe_directory || !request->name ||
        !request->directory || !request->output || !request->argument_count)
        return error_set(err, EINVAL,
                         "the launch request is not complete: daemon and shepherd are not of one installation");
    return 0;
}

int request_map(int fd, struct request *request, struct error *err)
{
    struct stat st;
    char *text;

    if (fstat(fd, &st) < 0 || st.st_size <= 0)
        return error_set(err, EINVAL, "the launch request is empty: it is carmad that sends it");
    text = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    if (text == MAP_FAILED || text[st.st_size - 1] != '\0')
        return error_set(err, EINVAL, "the launch request cannot be read");
    return request_parse(text, (size_t)st.st_size, request, err);
}

void request_release(struct request *request)
{
    for (size_t i = 0; i < array_size(request->script_words); i++)
        free(request->script_words[i]);
    free(request->arguments);
    free(request->environment);
    *request = (struct request){0};
}
