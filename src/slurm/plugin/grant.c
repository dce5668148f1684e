#include "slurm/plugin/grant.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "slurm/plugin/http.h"
#include "slurm/plugin/json.h"
#include "slurm/plugin/lease.h"
#include "slurm/plugin/others.h"
#include "slurm/plugin/plugin.h"

enum {
    AHEAD_MS = 200, /* slurmstepd waits no longer for a carmad that hangs: its task asks again */
    JOIN_WAIT_MS = 5000,
    SCRIPT_BYTES = 64 << 10,
};

static int asked_ahead = -1; /* where carmad answers the request that slurmstepd sent before it had a task */

/* The smallest GPU of this node; 0: carmad does not tell. A task need not ask again what its slurmstepd has heard. */
static int64_t smallest_gpu(int64_t deadline_ms)
{
    static int64_t least;
    struct text answer = {0};
    int64_t size;
    if (least == 0 && lease_capacity(plugin_settings.socket, deadline_ms, &answer) == 0) {
        struct json walk = {0}, name, item;
        struct json sizes = json_member(json_of(answer.bytes, answer.length), "memory_bytes");
        while (json_next(sizes, &walk, &name, &item))
            if (json_read_integer(item, &size) && (least == 0 || size < least))
                least = size;
    }
    text_release(&answer);
    return least;
}

/* A count of whole GPUs is a request of GPUs, not of memory, and shared in no way, also where it has grown to that.
 * false: carmad does not tell how large they are. */
static bool take_count(const struct step *step, struct lease_request *request, int64_t deadline_ms)
{
    int64_t each = step->counts.memory_bytes / step->counts.gpus, least = smallest_gpu(deadline_ms);
    request->exclusive = least > 0 && each >= least;
    if (request->exclusive)
        request->share = NULL;
    request->memory_bytes = request->exclusive || (step->counts.guess && step->restart == 0) ? 0 : each;
    return least > 0;
}

/* What carmad learns the job by: a batch script's text, a step's words. */
static void read_command(spank_t spank, const struct step *step, struct text *command)
{
    int count = 0;
    char **words = NULL;
    if (spank_get_item(spank, S_JOB_ARGV, &count, &words) != ESPANK_SUCCESS || count < 1)
        return;
    if (step->step == STEP_BATCH) {
        int fd = open(words[0], O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        char part[4096];
        ssize_t got;
        while (fd >= 0 && command->length < SCRIPT_BYTES && (got = read(fd, part, sizeof(part))) > 0)
            text_add(command, part, (size_t)got);
        if (fd >= 0)
            close(fd);
        if (command->length > 0)
            return;
    }
    for (int i = 0; i < count && command->length < SCRIPT_BYTES; i++)
        text_printf(command, "%s%s", i > 0 ? " " : "", words[i]);
    if (command->bytes != NULL)
        text_clean(command->bytes);
}

static void set_environment(spank_t spank, struct json environment)
{
    struct json walk = {0}, name, value;
    char key[128], text[4096];
    while (json_next(environment, &walk, &name, &value))
        if (json_read_string(name, key, sizeof(key)) && json_read_string(value, text, sizeof(text)))
            spank_setenv(spank, key, text, 1);
}

/* The variables beside CUDA_VISIBLE_DEVICES that Slurm sets for GPUs of its own. */
static void set_slurms_variables(spank_t spank, const struct step *step, struct json indexes)
{
    struct json walk = {0}, name, item;
    struct text list = {0};
    char count[24];
    int64_t index, gpus = 0;

    while (json_next(indexes, &walk, &name, &item))
        if (json_read_integer(item, &index))
            text_printf(&list, "%s%lld", gpus++ > 0 ? "," : "", (long long)index);
    snprintf(count, sizeof(count), "%lld", (long long)gpus);
    if (gpus > 0 && !list.failed) {
        spank_setenv(spank, step_is_numbered(step) ? "SLURM_STEP_GPUS" : "SLURM_JOB_GPUS", list.bytes, 1);
        spank_setenv(spank, "SLURM_GPUS_ON_NODE", count, 1);
    }
    text_release(&list);
}

/* Slurm's own group of this job, where it has one in the unified hierarchy. */
static bool read_own_group(char *path, size_t size)
{
    char *job = others_own_group(path, size) ? strstr(path, "/job_") : NULL;
    if (job != NULL)
        job[1 + strcspn(job + 1, "/")] = '\0';
    return job != NULL;
}

/* From now on all that the task starts belongs to the lease. */
static void enter_group(const char *group)
{
    char path[1024];
    snprintf(path, sizeof(path), "%s/cgroup.procs", group);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0 || write(fd, "0", 1) != 1)
        slurm_error("carma: %s cannot be entered: %s", path, strerror(errno));
    if (fd >= 0)
        close(fd);
}

/* Of --gpus-per-task; 0: it was not given. Since Slurm 24 it is one of a list: "cpu=2,gres/gpu=1". */
static long gpus_per_task(spank_t spank)
{
    char text[256], *at = text;
    if (spank_getenv(spank, "SLURM_GPUS_PER_TASK", text, sizeof(text)) != ESPANK_SUCCESS &&
        (spank_getenv(spank, "SLURM_TRES_PER_TASK", text, sizeof(text)) != ESPANK_SUCCESS ||
         (at = strstr(text, "gres/gpu")) == NULL))
        return 0;
    at[strcspn(at, ",")] = '\0';
    char *number = at + strlen(at);
    while (number > at && number[-1] >= '0' && number[-1] <= '9')
        number--;
    return strtol(number, NULL, 10);
}

/* A task of --gpus-per-task sees its own part of the step's whole GPUs, as with Slurm's own. A shared GPU's memory
 * limit would not bear that (docs/mps.md). */
static void keep_tasks_part(spank_t spank)
{
    char list[4096];
    int task = 0;
    long each = gpus_per_task(spank);
    if (each < 1 || spank_getenv(spank, "CUDA_VISIBLE_DEVICES", list, sizeof(list)) != ESPANK_SUCCESS ||
        spank_get_item(spank, S_TASK_ID, &task) != ESPANK_SUCCESS)
        return;
    char *part = list;
    for (long skip = each * task; skip > 0 && part != NULL; skip--)
        part = (part = strchr(part, ',')) != NULL ? part + 1 : NULL;
    char *end = part;
    for (long left = each; left > 0 && end != NULL; left--)
        end = (end = strchr(end, ',')) != NULL ? end + (left > 1) : NULL;
    if (part == NULL)
        return;
    if (end != NULL)
        *end = '\0';
    spank_setenv(spank, "CUDA_VISIBLE_DEVICES", part, 1);
}

/* The steps of a script would ask for CPUs and memory by GPUs that Slurm has not given: the job has them by other
 * names. */
static void drop_counts_by_gpu(spank_t spank)
{
    static const char *const names[] = {"SLURM_CPUS_PER_GPU", "SLURM_MEM_PER_GPU", "SLURM_NTASKS_PER_GPU"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        spank_unsetenv(spank, names[i]);
}

static int join(spank_t spank, const struct step *step, struct json lease, int64_t deadline_ms)
{
    int64_t id;
    char name[16], group[512], own[512];
    if (!json_read_integer(json_member(lease, "id"), &id))
        return -EPROTO;
    /* A task stays in Slurm's own group, whose limits hold for it and by which Slurm ends it. */
    bool slurms = read_own_group(own, sizeof(own));
    if (!slurms && json_read_string(json_member(lease, "cgroup"), group, sizeof(group)))
        enter_group(group);
    step_name(step, name);
    int code = lease_attach(plugin_settings.socket, id, name, getpid(), slurms ? own : NULL, deadline_ms);
    if (code == 0) {
        set_environment(spank, json_member(lease, "environment"));
        set_slurms_variables(spank, step, json_member(lease, "indexes"));
    }
    return code;
}

/* What the step asks for, but for the memory: borrowed from it and from `command`. */
static struct lease_request request_of(spank_t spank, const struct step *step, const char *share, struct text *command)
{
    read_command(spank, step, command);
    struct lease_request request = {
        .cluster = step->cluster,
        .node = step->node,
        .name = step->name,
        .directory = step->directory,
        .command = command->bytes != NULL ? command->bytes : "",
        .command_length = command->length,
        .job = step->job,
        .restart = step->restart,
        .gpus = step->counts.gpus,
        .share = share,
    };
    spank_get_item(spank, S_JOB_UID, &request.uid);
    spank_get_item(spank, S_JOB_GID, &request.gid);
    return request;
}

void grant_ask_ahead(spank_t spank, const struct step *step, const char *share)
{
    int64_t deadline_ms = http_now_ms() + AHEAD_MS;
    struct text command = {0};
    struct lease_request request = request_of(spank, step, share, &command);

    if (take_count(step, &request, deadline_ms))
        asked_ahead = lease_ask(plugin_settings.socket, &request, plugin_settings.wait_ms, deadline_ms);
    text_release(&command);
}

void grant_forget_ahead(void)
{
    if (asked_ahead >= 0)
        close(asked_ahead);
    asked_ahead = -1;
}

/* The answer is heard by the step's first task here; the others ask for the same lease by themselves. */
static int take_asked_ahead(spank_t spank)
{
    int asked = asked_ahead, task = 0;

    asked_ahead = -1;
    if (asked >= 0 && (spank_get_item(spank, S_TASK_ID, &task) != ESPANK_SUCCESS || task != 0)) {
        close(asked);
        asked = -1;
    }
    return asked;
}

/* carmad may know of a job of unknown need that it takes more than Slurm has counted: then the count holds. */
static bool is_beyond(const struct step *step, struct json lease)
{
    int64_t bytes;
    return !json_read_integer(json_member(lease, "request_bytes"), &bytes) ||
           bytes > step->counts.memory_bytes / step->counts.gpus;
}

static int take_lease(spank_t spank, const struct step *step, struct lease_request *request, int64_t deadline_ms,
                      struct text *answer)
{
    int asked = take_asked_ahead(spank);
    int64_t id = 0;
    if (!take_count(step, request, deadline_ms)) {
        if (asked >= 0)
            close(asked);
        return -ETIMEDOUT;
    }
    int code = lease_take(plugin_settings.socket, request, asked, deadline_ms, answer);
    struct json lease = json_of(answer->bytes, answer->length);
    /* It is a batch script that may be guessed for; its steps find its lease, which may have grown. */
    if (code != 0 || step->step != STEP_BATCH || request->memory_bytes > 0 || request->exclusive ||
        !is_beyond(step, lease) || !json_read_integer(json_member(lease, "id"), &id))
        return code;
    struct text said = {0};
    code = lease_end(plugin_settings.socket, id, SIGTERM, true, NULL, deadline_ms, &said);
    text_release(&said);
    request->memory_bytes = step->counts.memory_bytes / step->counts.gpus;
    return code != 0 ? code : lease_take(plugin_settings.socket, request, -1, deadline_ms, answer);
}

int grant_take(spank_t spank, const struct step *step, const char *share, int64_t deadline_ms, struct text *answer)
{
    struct text command = {0};
    struct lease_request request = request_of(spank, step, share, &command);
    int code = take_lease(spank, step, &request, deadline_ms, answer);

    if (code == 0)
        code = join(spank, step, json_of(answer->bytes, answer->length), http_now_ms() + JOIN_WAIT_MS);
    if (code == 0 && step->step == STEP_BATCH)
        drop_counts_by_gpu(spank);
    else if (code == 0 && request.exclusive)
        keep_tasks_part(spank);
    text_release(&command);
    return code;
}
