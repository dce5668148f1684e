#include "launch/shepherd/variables.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/memory.h"

#define CHECKPOINT_VARIABLE "CARMA_CHECKPOINT_DIR="
#define PROGRESS_VARIABLE   "CARMA_PROGRESS_FILE="
#define PORT_VARIABLE       "CARMA_MASTER_PORT="
#define UUIDS_VARIABLE      "CARMA_GPU_UUIDS="
#define VISIBLE_VARIABLE    "CUDA_VISIBLE_DEVICES="
#define ARRAY_VARIABLES     "CARMA_ARRAY_"

/* Below the ports that the kernel gives to clients. A job's port is its number's, so jobs that run together differ. */
#define FIRST_PORT 20000
#define PORTS      10000
#define TRIES      100
#define STRIDE     101 /* to the next try: far from the ports of the next jobs */

static bool same_name(const char *left, const char *right)
{
    size_t length = strcspn(left, "=");

    return strncmp(left, right, length) == 0 && right[length] == '=';
}

static bool can_bind(const struct sockaddr *address, socklen_t length)
{
    CLEANUP(close_fd) int fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int on = 1;

    if (fd < 0) /* a kernel without this protocol */
        return true;
    if (address->sa_family == AF_INET6) /* the other address is asked for by itself */
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
    return bind(fd, address, length) == 0 || errno != EADDRINUSE;
}

/* For both protocols: torch.distributed listens by IPv6 where there is one. */
static bool is_free(unsigned port)
{
    const struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    const struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};

    return can_bind((const struct sockaddr *)&v4, sizeof v4) && can_bind((const struct sockaddr *)&v6, sizeof v6);
}

/* Programs that find no port all take the same one, and the second on the machine fails. */
static unsigned master_port(uint64_t job)
{
    for (unsigned i = 0; i < TRIES; i++) {
        unsigned port = FIRST_PORT + (unsigned)((job + (uint64_t)i * STRIDE) % PORTS);
        if (is_free(port))
            return port;
    }
    return FIRST_PORT + (unsigned)(job % PORTS);
}

/* Rounded down, so that it stays within the reservation on the largest GPU as on any other. */
static void put_fraction(struct strbuf *variable, const struct shepherd_request *request)
{
    int64_t parts = request->gpu_total_bytes > 0
                        ? (int64_t)((double)request->gpu_memory_bytes / (double)request->gpu_total_bytes * 10000)
                        : 0;

    strbuf_printf(variable, "CARMA_GPU_MEMORY_FRACTION=%" PRId64 ".%04" PRId64, parts / 10000, parts % 10000);
}

/* Under Slurm's names as well, for scripts that were written for it. */
static size_t put_array(struct strbuf *own, const struct launch_array *array)
{
    static const char *const prefixes[] = {ARRAY_VARIABLES, "SLURM_ARRAY_"};
    const struct {
        const char *name;
        uint64_t value;
    } variables[] = {{"JOB_ID", array->id},
                     {"TASK_ID", array->index},
                     {"TASK_COUNT", array->jobs},
                     {"TASK_MIN", array->least},
                     {"TASK_MAX", array->most}};
    size_t count = 0;

    for (size_t i = 0; array->id && i < array_size(prefixes); i++)
        for (size_t k = 0; k < array_size(variables); k++)
            strbuf_printf(&own[count++], "%s%s=%" PRIu64, prefixes[i], variables[k].name, variables[k].value);
    return count;
}

struct strbuf *variables_of_carma(const struct shepherd_request *request, const char *checkpoint, size_t *count)
{
    const char *scale = getenv("CARMA_TIME_SCALE");
    struct strbuf *own = xcalloc(29, sizeof *own);

    strbuf_printf(&own[0], VISIBLE_VARIABLE "%s", request->indices ? request->indices : request->gpu_uuids);
    strbuf_puts(&own[1], "CUDA_DEVICE_ORDER=PCI_BUS_ID");
    strbuf_printf(&own[2], "CUDA_MPS_PIPE_DIRECTORY=%s", request->mps_pipe_directory);
    strbuf_printf(&own[3], "CARMA_JOB_ID=%" PRIu64, request->job);
    strbuf_printf(&own[4], "CARMA_JOB_NAME=%s", request->name);
    strbuf_printf(&own[5], UUIDS_VARIABLE "%s", request->gpu_uuids);
    strbuf_printf(&own[6], "CARMA_SUBMIT_DIR=%s", request->directory);
    strbuf_printf(&own[7], "CARMA_RESTART_COUNT=%" PRIu32, request->launch ? request->launch - 1 : 0);
    strbuf_printf(&own[8], "CARMA_RUN=%s", request->run_directory);
    strbuf_printf(&own[9], "CARMA_GPU_MEMORY_BYTES=%" PRId64, request->gpu_memory_bytes);
    put_fraction(&own[10], request);
    *count = 11;
    if (!request->lease)
        strbuf_printf(&own[(*count)++], PORT_VARIABLE "%u", master_port(request->job));
    if (request->progress_file)
        strbuf_printf(&own[(*count)++], PROGRESS_VARIABLE "%s", request->progress_file);
    if (checkpoint)
        strbuf_printf(&own[(*count)++], CHECKPOINT_VARIABLE "%s", checkpoint);
    if (request->mps_log_directory)
        strbuf_printf(&own[(*count)++], "CUDA_MPS_LOG_DIRECTORY=%s", request->mps_log_directory);
    if (request->mps_threads)
        strbuf_printf(&own[(*count)++], "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=%s", request->mps_threads);
    if (request->mps_memory_limit)
        strbuf_printf(&own[(*count)++], "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=%s", request->mps_memory_limit);
    *count += put_array(own + *count, &request->array);
    if (scale) /* a virtual node's jobs live in its time, also where the submitter's shell says otherwise */
        strbuf_printf(&own[(*count)++], "CARMA_TIME_SCALE=%s", scale);
    return own;
}

/* Good where a job's user says nothing. */
static const struct {
    const char *variable;
    const char *same_as; /* carma's own variable with its value; NULL: it is in `variable` */
    bool of_lease;       /* also where somebody else starts the processes */
} defaults[] = {
    /* JAX takes three quarters of a GPU's memory at its start, and TensorFlow all of it, for any model. */
    {"XLA_PYTHON_CLIENT_PREALLOCATE=false", NULL, true},
    {"TF_FORCE_GPU_ALLOW_GROWTH=true", NULL, true},
    {"PYTHONUNBUFFERED=1", NULL, false},                /* else a job that is ended takes its last output along */
    {"NVIDIA_VISIBLE_DEVICES=", UUIDS_VARIABLE, false}, /* containers' */
    {"MASTER_PORT=", PORT_VARIABLE, false},             /* torch.distributed's */
    {"PET_MASTER_PORT=", PORT_VARIABLE, false},         /* torchrun's own name for its option --master-port */
};

static const char *value_of(char *const *variables, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (same_name(name, variables[i]))
            return variables[i] + strcspn(name, "=") + 1;
    return NULL;
}

/* Whether the user says something. A job that submits another has these variables from its own start. */
static bool is_set(const struct shepherd_request *request, size_t i)
{
    const char *value = value_of(request->environment, request->environment_count, defaults[i].variable);
    const char *own =
        defaults[i].same_as ? value_of(request->environment, request->environment_count, defaults[i].same_as) : NULL;

    return value && !(own && strcmp(value, own) == 0);
}

static bool is_replaced(const char *variable, char *const *set, size_t count)
{
    /* a job that submits another has those of its own in its environment */
    return same_name(CHECKPOINT_VARIABLE, variable) || same_name(PROGRESS_VARIABLE, variable) ||
           strncmp(variable, ARRAY_VARIABLES, strlen(ARRAY_VARIABLES)) == 0 || value_of(set, count, variable);
}

char **variables_of_job(const struct shepherd_request *request, const struct strbuf *own, size_t own_count)
{
    char **result = xcalloc(request->environment_count + own_count + array_size(defaults) + 1, sizeof *result);
    size_t set = 0, count;

    while (set < own_count) {
        result[set] = own[set].text;
        set++;
    }
    for (size_t i = 0; i < array_size(defaults); i++)
        if (!is_set(request, i)) {
            const char *value = defaults[i].same_as ? value_of(result, own_count, defaults[i].same_as) : "";
            result[set++] = xasprintf("%s%s", defaults[i].variable, value ? value : "");
        }
    count = set;
    for (size_t i = 0; i < request->environment_count; i++)
        if (!is_replaced(request->environment[i], result, set))
            result[count++] = request->environment[i];
    return result;
}

void variables_unfiltered(const struct shepherd_request *request, struct strbuf *own, char **all)
{
    if (!request->indices || !request->devices || request->mps_log_directory)
        return;
    strbuf_release(&own[0]);
    strbuf_puts(&own[0], VISIBLE_VARIABLE);
    strbuf_puts(&own[0], request->gpu_uuids);
    all[0] = own[0].text;
}

void variables_print(const struct shepherd_request *request, struct strbuf *text)
{
    size_t count;
    struct strbuf *own = variables_of_carma(request, NULL, &count);

    for (size_t i = 0; i < array_size(defaults); i++)
        if (defaults[i].of_lease)
            strbuf_append(text, defaults[i].variable, strlen(defaults[i].variable) + 1);
    for (size_t i = 0; i < count; i++) {
        strbuf_append(text, own[i].text, own[i].length + 1);
        strbuf_release(&own[i]);
    }
    free(own);
}
