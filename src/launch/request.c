#include "launch/request.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/memory.h"
#include "base/units.h"
#include "launch/cgroup/cgroup.h"

/* The text is a row of "key=value" strings, each with its NUL. Both sides come from one installation, so it has no
 * version; a key that the other side does not know is an error. */

/* A row is a member of struct shepherd_request, whose name is the key, and the value that request_print() sends for it:
 * one of the launch, or `found`, what it has to work out. A text that is NULL is left out. The lists of arguments and
 * of the environment have one entry for each element. */
#define REQUEST_FIELDS(TEXT, NUMBER)                                                                                   \
    TEXT(run_directory, launch->run_directory)                                                                         \
    NUMBER(job, launch->job)                                                                                           \
    NUMBER(array.id, launch->array.id)                                                                                 \
    NUMBER(array.index, launch->array.index)                                                                           \
    NUMBER(array.jobs, launch->array.jobs)                                                                             \
    NUMBER(array.least, launch->array.least)                                                                           \
    NUMBER(array.most, launch->array.most)                                                                             \
    NUMBER(launch, launch->launch)                                                                                     \
    NUMBER(lease, launch->lease)                                                                                       \
    NUMBER(uid, launch->uid)                                                                                           \
    NUMBER(gid, launch->gid)                                                                                           \
    TEXT(user, launch->user)                                                                                           \
    TEXT(gpu_uuids, launch->gpu_uuids)                                                                                 \
    TEXT(indices, launch->indices)                                                                                     \
    TEXT(devices, launch->devices)                                                                                     \
    NUMBER(gpu_memory_bytes, launch->gpu_memory_bytes)                                                                 \
    NUMBER(gpu_total_bytes, launch->gpu_total_bytes)                                                                   \
    TEXT(mps_pipe_directory, mps_pipe_directory)                                                                       \
    TEXT(mps_log_directory, found.mps_log_directory)                                                                   \
    TEXT(mps_threads, found.mps_threads)                                                                               \
    TEXT(mps_memory_limit, found.mps_memory_limit.text)                                                                \
    TEXT(progress_file, found.progress_file)                                                                           \
    TEXT(attach, launch->attach)                                                                                       \
    TEXT(terminal_socket, found.terminal_socket)                                                                       \
    TEXT(notify_socket, launch->notify_socket)                                                                         \
    NUMBER(limits.memory_bytes, launch->limits.memory_bytes)                                                           \
    NUMBER(limits.pids, launch->limits.pids)                                                                           \
    NUMBER(limits.cpus, launch->limits.cpus)                                                                           \
    NUMBER(limits.cpu_weight, launch->limits.cpu_weight)                                                               \
    NUMBER(grace_ns, launch->grace_ns)                                                                                 \
    NUMBER(start_timeout_ns, launch->start_timeout_ns)                                                                 \
    NUMBER(time_limit_ns, launch->time_limit_ns)                                                                       \
    NUMBER(signal, launch->signal)                                                                                     \
    NUMBER(signal_before_ns, launch->signal_before_ns)                                                                 \
    NUMBER(requeue, launch->requeue)                                                                                   \
    TEXT(name, launch->name)                                                                                           \
    TEXT(directory, launch->directory)                                                                                 \
    TEXT(output, launch->output)                                                                                       \
    TEXT(error, launch->error)                                                                                         \
    TEXT(conda_environment, launch->conda_environment)                                                                 \
    TEXT(container, launch->container)                                                                                 \
    TEXT(container_engine, launch->container_engine)                                                                   \
    TEXT(surroundings, launch->surroundings)                                                                           \
    TEXT(on_end, launch->on_end)                                                                                       \
    TEXT(script, launch->script)                                                                                       \
    TEXT(script_directory, launch->script ? launch->script_directory : NULL)

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

/* What a launch says in other words. */
struct found {
    char *progress_file;   /* owned */
    char *terminal_socket; /* owned */
    const char *mps_log_directory;
    char *mps_threads;              /* owned */
    struct strbuf mps_memory_limit; /* owned */
};

/* The limits as CUDA reads them. Devices are counted among those that the job sees; sizes go by whole MiB, upwards. */
static void find_mps(const struct launch_request *launch, struct found *found)
{
    uint32_t device = 0;

    found->mps_log_directory = launch->mps_log_directory;
    if (launch->mps_threads_percent)
        found->mps_threads = xasprintf("%" PRIu32, launch->mps_threads_percent);
    if (launch->mps_memory_limit_bytes < 0)
        return;
    for (const char *at = launch->gpu_uuids; at; at = strchr(at, ','), at = at ? at + 1 : NULL, device++)
        strbuf_printf(&found->mps_memory_limit, "%s%" PRIu32 "=%" PRId64 "M", device ? "," : "", device,
                      (launch->mps_memory_limit_bytes + MIB - 1) / MIB);
}

void request_print(const struct launch_request *launch, const char *mps_pipe_directory, struct strbuf *text)
{
    struct found found = {0};

    found.progress_file = launch->no_progress ? NULL : launch_progress_file(launch->script_directory);
    found.terminal_socket = launch->attach ? launch_terminal_socket(launch->script_directory) : NULL;
    if (launch->mps_pipe_directory)
        find_mps(launch, &found);
#define PUT_TEXT(member, value)   put(text, #member, value);
#define PUT_NUMBER(member, value) put_number(text, #member, (int64_t)(value));
    REQUEST_FIELDS(PUT_TEXT, PUT_NUMBER)
    for (size_t i = 0; i < launch->argument_count; i++)
        put(text, "argument", launch->arguments[i]);
    for (size_t i = 0; i < launch->environment_count; i++)
        put(text, "environment", launch->environment[i]);
    free(found.progress_file);
    free(found.terminal_socket);
    free(found.mps_threads);
    strbuf_release(&found.mps_memory_limit);
}

struct parser {
    struct shepherd_request *request;
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
    struct shepherd_request *request = parser->request;

#define TAKE(member, read)                                                                                             \
    if (strcmp(key, #member) == 0) {                                                                                   \
        request->member = read;                                                                                        \
        return true;                                                                                                   \
    }
#define TAKE_TEXT(member, sent)   TAKE(member, value)
#define TAKE_NUMBER(member, sent) TAKE(member, (__typeof__(request->member))strtoll(value, NULL, 10))
    REQUEST_FIELDS(TAKE_TEXT, TAKE_NUMBER)
    if (strcmp(key, "argument") == 0)
        list_add(&request->arguments, &request->argument_count, &parser->argument_capacity, value);
    else if (strcmp(key, "environment") == 0)
        list_add(&request->environment, &request->environment_count, &parser->environment_capacity, value);
    else
        return false;
    return true;
}

int request_parse(char *text, size_t length, struct shepherd_request *request, struct error *err)
{
    struct parser parser = {.request = request};

    *request = (struct shepherd_request){0};
    for (size_t at = 0; at < length; at += strlen(text + at) + 1) {
        char *key = text + at, *equals = strchr(key, '=');
        if (!equals)
            return error_set(err, EINVAL, "the launch request has an entry without a value: '%.60s'", key);
        *equals = '\0';
        if (!take(&parser, key, equals + 1))
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

int request_map(int fd, struct shepherd_request *request, struct error *err)
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

void request_release(struct shepherd_request *request)
{
    for (size_t i = 0; i < array_size(request->script_words); i++)
        free(request->script_words[i]);
    free(request->arguments);
    free(request->environment);
    *request = (struct shepherd_request){0};
}
