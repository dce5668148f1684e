/* libcarma_spank.so: the GPUs of a Slurm job on this node are a lease of its carmad. No callback fails but
 * task_init_privileged, where a failure ends the task alone: anywhere else Slurm would drain the node. Slurm does the
 * counting of memory and GPUs. The prolog asks slurmctld for what it has counted (record.h), and leaves it in the
 * spool, which is root's alone; the job's steps ask for that lease, whatever their options and environment say. A job
 * that is not counted has no lease and sees no GPU. One that carmad cannot hold is handed back to carma-slurm-agent. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#pragma GCC visibility push(default) /* Slurm looks these names up */
#include <slurm/spank.h>
SPANK_PLUGIN(carma, 1)
#pragma GCC visibility pop

#include "slurm/plugin/http.h"
#include "slurm/plugin/json.h"
#include "slurm/plugin/lease.h"
#include "slurm/plugin/others.h"
#include "slurm/plugin/plugin.h"
#include "slurm/plugin/record.h"
#include "slurm/plugin/run.h"
#include "slurm/plugin/size.h"
#include "slurm/plugin/spool.h"

/* Which Slurm the file fits, for `carma doctor --slurm`, which looks for these bytes and does not load it. */
static const struct {
    char mark[16];
    uint32_t version;
} built __attribute__((used)) = {"carma_spank_for", SLURM_VERSION_NUMBER};

enum {
    /* For the agent to order a requeue, or to note what the job used, while Slurm still holds the job running. */
    AGENT_WAIT_MS = 5000,
    RETRY_WAIT_MS = 20000, /* a job that Slurm is told to have failed has failed to its dependents */
    END_WAIT_MS = 5000,
    QUERY_WAIT_MS = 3000,
    AHEAD_MS = 200, /* slurmstepd waits no longer for a carmad that hangs: its task asks again */
    SCRIPT_BYTES = 64 << 10,
};
#define STEP_BATCH       UINT32_C(0xfffffffb)
#define STEP_EXTERN      UINT32_C(0xfffffffc)
#define STEP_INTERACTIVE UINT32_C(0xfffffffa)

static struct settings settings;
static struct options options = {.gpus = 1};
static int stderr_note = -1; /* a file without a name: the batch task writes there where its standard error goes */
static int asked_ahead = -1; /* where carmad answers the request that slurmstepd sent before it had a task */

static int on_option(int value, const char *argument, int remote)
{
    if (options_set(&options, (enum option)value, argument))
        return 0;
    slurm_error("carma: '%s' is not a value of this option: see --help", argument);
    return -1;
}

/* The last ones are read by cli_filter.lua at submission. */
static struct spank_option table[] = {
    {"carma-mem", "SIZE", "GPU memory that the job needs on each GPU, such as 12G", 1, OPTION_MEMORY, on_option},
    {"carma-gpus", "N", "GPUs on each node (default: 1)", 1, OPTION_GPUS, on_option},
    {"carma-share", "MODE", "how the GPUs are shared: mps or time-slice", 1, OPTION_SHARE, on_option},
    {"carma-exclusive", NULL, "share the GPUs with no other job", 0, OPTION_EXCLUSIVE, on_option},
    {"carma-summary", "FILE", "estimate the memory by this summary of the model", 1, OPTION_ESTIMATE, on_option},
    {"carma-capture", "FILE",
     "estimate the memory by this capture of a training step; auto: record one now, in a sandbox", 1, OPTION_ESTIMATE,
     on_option},
    {"carma-hf-config", "FILE", "estimate the memory by this Hugging Face configuration", 1, OPTION_ESTIMATE,
     on_option},
    {"carma-batch-size", "N", "with one of the last three: samples in a step on each GPU", 1, OPTION_ESTIMATE,
     on_option},
    SPANK_OPTIONS_TABLE_END,
};

/* What identifies a step. */
struct step {
    uint32_t job, step, restart;
    char cluster[64], node[64], name[128], directory[512];
    bool known; /* what Slurm has counted for the job: */
    struct counts counts;
};

static void read_variable(spank_t spank, const char *name, char *value, size_t size, const char *otherwise)
{
    const char *own = getenv(name); /* slurmstepd's, or that of a prolog or epilog */
    if (spank_getenv(spank, name, value, (int)size) != ESPANK_SUCCESS)
        snprintf(value, size, "%s", own != NULL ? own : otherwise);
}

/* A user's text, which carmad would refuse with control characters in it; and a lease must not hang on what he writes.
 */
static void clean(char *text)
{
    for (; *text != '\0'; text++)
        if ((unsigned char)*text < ' ' || *text == 0x7f)
            *text = ' ';
}

static void read_node(spank_t spank, char node[static 64])
{
    char host[64] = "localhost";
    gethostname(host, sizeof(host) - 1);
    host[strcspn(host, ".")] = '\0';
    read_variable(spank, "SLURMD_NODENAME", node, 64, host);
}

static void read_settings(int count, char **arguments)
{
    const char *wrong = settings_read(&settings, count, arguments);
    if (wrong != NULL)
        slurm_error("carma: plugstack.conf: '%s' is not an argument of libcarma_spank.so: socket=PATH spool=PATH "
                    "wait=SECONDS(1-60) others=none|all",
                    wrong);
}

static void read_step(spank_t spank, struct step *step)
{
    *step = (struct step){0};
    spank_get_item(spank, S_JOB_ID, &step->job);
    spank_get_item(spank, S_JOB_STEPID, &step->step);
    read_node(spank, step->node);
    read_variable(spank, "SLURM_CLUSTER_NAME", step->cluster, sizeof(step->cluster), "slurm");
    read_variable(spank, "SLURM_JOB_NAME", step->name, sizeof(step->name), "slurm");
    read_variable(spank, "SLURM_SUBMIT_DIR", step->directory, sizeof(step->directory), "/");
    clean(step->name);
    clean(step->directory);
    if (step->name[0] == '\0')
        strcpy(step->name, "slurm");
    if (step->directory[0] != '/')
        strcpy(step->directory, "/");
    /* A step of srun has these variables from the user; the prolog has them from Slurm, and has written them down. */
    spool_get_text(settings.spool, step->job, "cluster", step->cluster, sizeof(step->cluster));
    spool_get_text(settings.spool, step->job, "node", step->node, sizeof(step->node));
    int64_t restart = 0; /* Slurm tells its batch steps 0 always: the prolog has written it down */
    if (spool_get(settings.spool, step->job, "restart", &restart))
        step->restart = (uint32_t)restart;
    int64_t guess = 0;
    step->known = spool_get(settings.spool, step->job, "gpus", &step->counts.gpus);
    spool_get(settings.spool, step->job, "gpumem", &step->counts.memory_bytes);
    step->counts.guess = spool_get(settings.spool, step->job, "guess", &guess) && guess != 0;
}

static void name_step(const struct step *step, char text[static 16])
{
    if (step->step == STEP_BATCH)
        strcpy(text, "batch");
    else if (step->step == STEP_EXTERN)
        strcpy(text, "extern");
    else if (step->step == STEP_INTERACTIVE)
        strcpy(text, "interactive");
    else
        snprintf(text, 16, "%u", step->step);
}

/* One of srun's, and not the script's or salloc's shell. */
static bool is_numbered(const struct step *step)
{
    return step->step != STEP_BATCH && step->step != STEP_EXTERN && step->step != STEP_INTERACTIVE;
}

int slurm_spank_init(spank_t spank, int count, char **arguments)
{
    read_settings(count, arguments);
    spank_context_t context = spank_context();
    if (context == S_CTX_SLURMD || context == S_CTX_JOB_SCRIPT)
        return 0;
    for (struct spank_option *option = table; option->name != NULL; option++)
        if (spank_option_register(spank, option) != ESPANK_SUCCESS)
            slurm_error("carma: Slurm does not take the option --%s", option->name);
    return 0;
}

static void forget_facts(uint32_t job)
{
    static const char *const facts[] = {"gpus", "gpumem", "guess", "restart", "cluster", "node", "status"};
    for (size_t i = 0; i < sizeof(facts) / sizeof(facts[0]); i++)
        spool_forget(settings.spool, job, facts[i]);
}

/* Whether carma gives this node's GPUs: its agent has made the spool. */
static bool is_ours(void)
{
    return access(settings.spool, F_OK) == 0;
}

/* What Slurm has counted, as facts of the spool; "gpus" comes last, and says that the others are there. */
static void write_down_job(uint32_t job, const char *node)
{
    struct record record = {0};
    int code = record_ask(job, node, http_now_ms() + QUERY_WAIT_MS, &record);
    if (code != 0) {
        slurm_error("carma: slurmctld does not tell what it counts for job %u (%s)", job, strerror(-code));
        return;
    }
    if (record.counts.gpus > 0) {
        spool_put(settings.spool, job, "gpumem", record.counts.memory_bytes);
        spool_put(settings.spool, job, "guess", record.counts.guess);
        spool_put(settings.spool, job, "restart", record.restart);
    }
    if (record.counts.gpus > 0 || is_ours())
        spool_put(settings.spool, job, "gpus", record.counts.gpus);
}

static bool slurm_ends(const struct step *step)
{
    struct record record = {0};
    return record_ask(step->job, step->node, http_now_ms() + QUERY_WAIT_MS, &record) == 0 && !record.running;
}

/* true where the job was submitted with one of carma's options, or its first step was. */
static bool has_options(spank_t spank)
{
    for (struct spank_option *option = table; option->name != NULL; option++) {
        char *value = NULL;
        if (spank_option_getopt(spank, option, option->has_arg ? &value : NULL) == ESPANK_SUCCESS)
            return true;
    }
    return false;
}

int slurm_spank_job_prolog(spank_t spank, int count, char **arguments)
{
    read_settings(count, arguments);
    uint32_t job = 0;
    if ((!is_ours() && !has_options(spank)) || spank_get_item(spank, S_JOB_ID, &job) != ESPANK_SUCCESS)
        return 0;
    char node[64];
    const char *cluster = getenv("SLURM_CLUSTER_NAME");
    forget_facts(job);
    read_node(spank, node);
    if (cluster != NULL)
        spool_put_text(settings.spool, job, "cluster", cluster);
    spool_put_text(settings.spool, job, "node", node);
    write_down_job(job, node);
    return 0;
}

/* The smallest GPU of this node; 0: carmad does not tell. A task need not ask again what its slurmstepd has heard. */
static int64_t smallest_gpu(int64_t deadline_ms)
{
    static int64_t least;
    struct text answer = {0};
    int64_t size;
    if (least == 0 && lease_capacity(settings.socket, deadline_ms, &answer) == 0) {
        struct json walk = {0}, name, item;
        struct json sizes = json_member(json_of(answer.bytes, answer.length), "memory_bytes");
        while (json_next(sizes, &walk, &name, &item))
            if (json_read_integer(item, &size) && (least == 0 || size < least))
                least = size;
    }
    text_release(&answer);
    return least;
}

/* Now and then slurmd runs no prolog for a job that starts again on a node that it had. The epilog has removed what
 * the first one wrote. And slurmctld may not have answered the prolog. */
static void make_up_for_prolog(spank_t spank)
{
    struct step step;
    char node[64];

    read_step(spank, &step);
    if (!is_ours() && !options.asked)
        return;
    if (!step.known)
        write_down_job(step.job, step.node);
    /* A batch step's environment is Slurm's, another's the user's word. */
    if (step.step != STEP_BATCH || spool_get_text(settings.spool, step.job, "node", node, sizeof(node)))
        return;
    spool_put_text(settings.spool, step.job, "cluster", step.cluster);
    spool_put_text(settings.spool, step.job, "node", step.node);
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
        clean(command->bytes);
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
        spank_setenv(spank, is_numbered(step) ? "SLURM_STEP_GPUS" : "SLURM_JOB_GPUS", list.bytes, 1);
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

/* A task of --gpus-per-task sees its own part of the step's whole GPUs, as with Slurm's own. A shared GPU's memory
 * limit would not bear that (docs/mps.md). */
static void keep_tasks_part(spank_t spank)
{
    char each_text[32], list[4096];
    int task = 0;
    if (spank_getenv(spank, "SLURM_GPUS_PER_TASK", each_text, sizeof(each_text)) != ESPANK_SUCCESS ||
        spank_getenv(spank, "CUDA_VISIBLE_DEVICES", list, sizeof(list)) != ESPANK_SUCCESS ||
        spank_get_item(spank, S_TASK_ID, &task) != ESPANK_SUCCESS)
        return;
    const char *number = strrchr(each_text, ':');
    long each = strtol(number != NULL ? number + 1 : each_text, NULL, 10);
    char *part = list;
    for (long skip = each * task; skip > 0 && part != NULL; skip--)
        part = (part = strchr(part, ',')) != NULL ? part + 1 : NULL;
    char *end = part;
    for (long left = each; left > 0 && end != NULL; left--)
        end = (end = strchr(end, ',')) != NULL ? end + (left > 1) : NULL;
    if (each < 1 || part == NULL)
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
    name_step(step, name);
    int code = lease_attach(settings.socket, id, name, getpid(), slurms ? own : NULL, deadline_ms);
    if (code == 0) {
        set_environment(spank, json_member(lease, "environment"));
        set_slurms_variables(spank, step, json_member(lease, "indexes"));
    }
    return code;
}

/* Hands the job to the agent, which puts it back into the queue. */
static void hand_back(const struct step *step, int code, struct json answer)
{
    char error[384];
    if (code == -ENODATA)
        snprintf(error, sizeof(error), "slurmctld does not tell what it counts for it");
    else if (!json_read_string(json_member(answer, "error"), error, sizeof(error)))
        snprintf(error, sizeof(error), "carmad at %s: %s", settings.socket, strerror(-code));
    slurm_error("carma: %s has no GPU for job %u now (%s): it goes back to the queue where it may be requeued",
                step->node, step->job, error);
    char lines[640];
    snprintf(lines, sizeof(lines), "never %d\nroom %d\nreason %s\n", code == -ERANGE, code == -EBUSY, error);
    code = spool_order(settings.spool, step->job, step->restart, "refused", lines);
    if (code != 0)
        slurm_error("carma: %s cannot be written: %s", settings.spool, strerror(-code));
    else if (!spool_await(settings.spool, step->job, step->restart, "refused", http_now_ms() + AGENT_WAIT_MS))
        slurm_error("carma: carma-slurm-agent does not answer: job %u waits for it in %s", step->job, settings.spool);
}

/* What the step asks for, but for the memory: borrowed from it and from `command`. */
static struct lease_request request_of(spank_t spank, const struct step *step, struct text *command)
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
        .share = options.share[0] != '\0' ? options.share : NULL,
    };
    spank_get_item(spank, S_JOB_UID, &request.uid);
    spank_get_item(spank, S_JOB_GID, &request.gid);
    return request;
}

/* carmad stores and places the lease while slurmstepd sets the step up. A step without a prolog's word waits for its
 * task, and the extern step has none. */
static void ask_ahead(spank_t spank)
{
    int64_t deadline_ms = http_now_ms() + AHEAD_MS;
    struct step step;
    struct text command = {0};

    read_step(spank, &step);
    if (step.step == STEP_BATCH)
        stderr_note = memfd_create("carma-stderr", MFD_CLOEXEC);
    if (step.step == STEP_EXTERN || step.counts.gpus == 0)
        return;
    struct lease_request request = request_of(spank, &step, &command);
    if (take_count(&step, &request, deadline_ms))
        asked_ahead = lease_ask(settings.socket, &request, settings.wait_ms, deadline_ms);
    text_release(&command);
}

int slurm_spank_init_post_opt(spank_t spank, int count, char **arguments)
{
    if (spank_remote(spank) == 1)
        ask_ahead(spank);
    return 0;
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

int slurm_spank_task_post_fork(spank_t spank, int count, char **arguments)
{
    if (asked_ahead >= 0)
        close(asked_ahead);
    asked_ahead = -1;
    return 0;
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
    int code = lease_take(settings.socket, request, asked, deadline_ms, answer);
    struct json lease = json_of(answer->bytes, answer->length);
    /* It is a batch script that may be guessed for; its steps find its lease, which may have grown. */
    if (code != 0 || step->step != STEP_BATCH || request->memory_bytes > 0 || request->exclusive ||
        !is_beyond(step, lease) || !json_read_integer(json_member(lease, "id"), &id))
        return code;
    struct text said = {0};
    code = lease_end(settings.socket, id, SIGTERM, true, NULL, deadline_ms, &said);
    text_release(&said);
    request->memory_bytes = step->counts.memory_bytes / step->counts.gpus;
    return code != 0 ? code : lease_take(settings.socket, request, -1, deadline_ms, answer);
}

/* Its options are the user's word, and the job's lease is what all of its steps share. */
static void warn_of_more(const struct step *step)
{
    const struct counts *counts = &step->counts;
    if (step->step != STEP_BATCH &&
        (options.gpus > counts->gpus || options.memory_bytes > counts->memory_bytes / counts->gpus))
        slurm_error(
            "carma: job %u has %lld MiB of GPU memory on %lld of this node's GPUs, and its steps get no more: ask "
            "for more by the options of sbatch or salloc",
            step->job, (long long)(counts->memory_bytes / counts->gpus >> 20), (long long)counts->gpus);
}

/* Slurm counts no GPU for the job. The steps of one component of a heterogeneous job inherit the options of the others.
 */
static int go_without(spank_t spank, const struct step *step)
{
    char size[16];
    if (!options.asked || spank_getenv(spank, "SLURM_HET_SIZE", size, sizeof(size)) == ESPANK_SUCCESS)
        return 0;
    if (!step->known)
        hand_back(step, -ENODATA, (struct json){0});
    else
        slurm_error("carma: Slurm counts no GPU for job %u on %s, so this step cannot have one: give --carma-mem or "
                    "--carma-gpus to sbatch or salloc",
                    step->job, step->node);
    return -1;
}

int slurm_spank_task_init_privileged(spank_t spank, int count, char **arguments)
{
    int64_t deadline_ms = http_now_ms() + settings.wait_ms;
    struct step step;
    make_up_for_prolog(spank);
    read_step(spank, &step);
    bool hidden = step.counts.gpus == 0 && is_ours() && !settings.others_all;
    if (step.counts.gpus > 0 || options.asked || hidden)
        spank_setenv(spank, "CUDA_VISIBLE_DEVICES", "", 1); /* whatever happens: no GPU that carmad has not given */
    int code = hidden && step.known ? others_hide_gpus() : 0;
    if (code != 0)
        slurm_debug("carma: job %u could open the device nodes of GPUs: %s", step.job, strerror(-code));
    if (step.counts.gpus == 0)
        return go_without(spank, &step);
    warn_of_more(&step);
    struct text command = {0}, answer = {0};
    struct lease_request request = request_of(spank, &step, &command);
    code = take_lease(spank, &step, &request, deadline_ms, &answer);
    struct json lease = json_of(answer.bytes, answer.length);
    if (code == 0)
        code = join(spank, &step, lease, http_now_ms() + END_WAIT_MS);
    if (code == 0 && step.step == STEP_BATCH)
        drop_counts_by_gpu(spank);
    else if (code == 0 && request.exclusive)
        keep_tasks_part(spank);
    if (code != 0)
        hand_back(&step, code, lease);
    text_release(&command);
    text_release(&answer);
    return code == 0 ? 0 : -1;
}

/* As the user, after the redirections: slurmstepd will look there when the script has failed. */
int slurm_spank_task_init(spank_t spank, int count, char **arguments)
{
    char path[4096];
    ssize_t length = stderr_note >= 0 ? readlink("/proc/self/fd/2", path, sizeof(path)) : -1;
    if (length > 0 && pwrite(stderr_note, path, (size_t)length, 0) != length)
        slurm_error("carma: the place of the standard error cannot be noted: %s", strerror(errno));
    return 0;
}

static void read_output(spank_t spank, struct text *output)
{
    char path[4097];
    ssize_t length = stderr_note >= 0 ? pread(stderr_note, path, sizeof(path) - 1, 0) : -1;
    if (length <= 0 || path[0] != '/')
        return;
    path[length] = '\0';
    struct run_user user = {0};
    gid_t *groups = NULL;
    if (spank_get_item(spank, S_JOB_UID, &user.uid) != ESPANK_SUCCESS ||
        spank_get_item(spank, S_JOB_GID, &user.gid) != ESPANK_SUCCESS ||
        spank_get_item(spank, S_JOB_SUPPLEMENTARY_GIDS, &groups, &user.group_count) != ESPANK_SUCCESS)
        return;
    user.groups = groups;
    int code = run_tail(path, &user, http_now_ms() + QUERY_WAIT_MS, output);
    if (code != 0)
        slurm_error("carma: the end of %s cannot be read: %s", path, strerror(-code));
}

/* Ended by the batch step already, or by carmad. */
static bool is_over(struct json lease)
{
    static const char *const live[] = {"QUEUED", "SUBMITTED", "PLACED", "STARTING", "RUNNING"};
    char state[24];

    for (size_t i = 0; json_read_string(json_member(lease, "state"), state, sizeof state) && i < 5; i++)
        if (strcmp(state, live[i]) == 0)
            return false;
    return true;
}

/* The lease of the step's job and restart on this node; with `over` also one that carmad has ended, where none lives.
 * 0: there is none. */
static int64_t find_lease(const struct step *step, bool over, int64_t deadline_ms)
{
    struct text answer = {0};
    struct json walk = {0}, name, lease;
    int64_t live = 0, ended = 0, id, restart;
    char node[64];

    if (lease_list(settings.socket, step->cluster, step->job, deadline_ms, &answer) == 0)
        while (json_next(json_member(json_of(answer.bytes, answer.length), "leases"), &walk, &name, &lease))
            if (json_read_integer(json_member(lease, "id"), &id) &&
                json_read_integer(json_member(lease, "restart"), &restart) && restart == step->restart &&
                json_read_string(json_member(lease, "node"), node, sizeof node) && strcmp(node, step->node) == 0) {
                if (!is_over(lease))
                    live = id;
                else if (id > ended)
                    ended = id;
            }
    text_release(&answer);
    return live != 0 || !over ? live : ended;
}

/* Leaves carmad's answer to the agent, and waits until Slurm has been told. */
static void leave_to_agent(const struct step *step, bool stopped, const struct text *answer)
{
    char verdict[16] = "";
    bool retry =
        json_read_string(json_member(json_of(answer->bytes, answer->length), "verdict"), verdict, sizeof verdict) &&
        strcmp(verdict, "retry") == 0 && !stopped;
    const char *what = retry ? "retry" : "ended";
    struct text lines = {0};
    int code;

    text_printf(&lines, "gpus %lld\nanswer ", (long long)step->counts.gpus);
    for (size_t i = 0; i < answer->length; i++)
        text_add(&lines, answer->bytes[i] == '\n' ? " " : answer->bytes + i, 1);
    text_add(&lines, "\n", 1);
    code = lines.failed ? -ENOMEM : spool_order(settings.spool, step->job, step->restart, what, lines.bytes);
    if (code != 0)
        slurm_error("carma: %s cannot be written: %s", settings.spool, strerror(-code));
    else if ((!retry || step->step == STEP_BATCH) && /* the agent itself waits for the end of the epilog */
             !spool_await(settings.spool, step->job, step->restart, what,
                          http_now_ms() + (retry ? RETRY_WAIT_MS : AGENT_WAIT_MS)))
        slurm_error("carma: carma-slurm-agent does not answer: job %u waits for it in %s", step->job, settings.spool);
    text_release(&lines);
}

/* With `over`, carmad's verdict on a lease counts that ended before its task did: its shepherd was killed. */
static void end_lease(const struct step *step, int status, bool stopped, bool over, const struct text *output)
{
    int64_t deadline_ms = http_now_ms() + END_WAIT_MS;
    int64_t id = find_lease(step, over, deadline_ms);
    struct text answer = {0};
    int code;

    if (id == 0)
        return;
    code = lease_end(settings.socket, id, status, stopped, output, deadline_ms, &answer);
    if (code == 0)
        leave_to_agent(step, stopped, &answer);
    else
        slurm_error("carma: job %u's lease %lld cannot be ended (%s): carmad ends it when its processes have",
                    step->job, (long long)id, strerror(-code));
    text_release(&answer);
}

int slurm_spank_task_exit(spank_t spank, int count, char **arguments)
{
    struct step step;
    struct text output = {0};
    int64_t before = 0;
    int status = 0;

    read_settings(count, arguments);
    read_step(spank, &step);
    if (step.counts.gpus == 0)
        return 0;
    spank_get_item(spank, S_TASK_EXIT_STATUS, &status);
    if (step.step != STEP_BATCH) {
        /* The lease is the allocation's, which may have more steps. Where there is no batch script, the epilog tells
         * carmad the first failure. */
        if (!spool_get(settings.spool, step.job, "status", &before) || before == 0)
            spool_put(settings.spool, step.job, "status", status);
        return 0;
    }
    if (status != 0)
        read_output(spank, &output);
    end_lease(&step, status, WIFSIGNALED(status) && slurm_ends(&step), true, &output);
    text_release(&output);
    return 0;
}

/* The last word on a job on this node, also after a slurmstepd that was killed. */
int slurm_spank_job_epilog(spank_t spank, int count, char **arguments)
{
    read_settings(count, arguments);
    if (!is_ours())
        return 0;
    struct step step;
    read_step(spank, &step);
    int64_t status = 0;
    bool told = spool_get(settings.spool, step.job, "status", &status);
    if (!step.known || step.counts.gpus > 0)
        end_lease(&step, told ? (int)status : SIGTERM, !told, false, NULL);
    forget_facts(step.job);
    return 0;
}
