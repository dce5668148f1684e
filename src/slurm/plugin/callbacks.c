/* libcarma_spank.so: the GPUs of a Slurm job on this node are a lease of its carmad. No callback fails but
 * task_init_privileged, where a failure ends the task alone: anywhere else Slurm would drain the node. Slurm does the
 * counting of memory and GPUs. The prolog asks slurmctld for what it has counted (record.h), and leaves it in the
 * spool, which is root's alone; the job's steps ask for that lease, whatever their options and environment say. A job
 * that is not counted has no lease and sees no GPU. One that carmad cannot hold is handed back to carma-slurm-agent. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "slurm/plugin/ending.h"
#include "slurm/plugin/grant.h"
#include "slurm/plugin/http.h"
#include "slurm/plugin/json.h"
#include "slurm/plugin/others.h"
#include "slurm/plugin/plugin.h"
#include "slurm/plugin/run.h"
#include "slurm/plugin/spool.h"
#include "slurm/plugin/step.h"

#pragma GCC visibility push(default) /* Slurm looks these names up */
SPANK_PLUGIN(carma, 1)
#pragma GCC visibility pop

/* Which Slurm the file fits, for `carma doctor --slurm`, which looks for these bytes and does not load it. */
static const struct {
    char mark[16];
    uint32_t version;
} built __attribute__((used)) = {"carma_spank_for", SLURM_VERSION_NUMBER};

enum { TAIL_WAIT_MS = 3000 };

struct settings plugin_settings;
static struct options options = {.gpus = 1};
static int stderr_note = -1; /* a file without a name: the batch task writes there where its standard error goes */

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

static void read_settings(int count, char **arguments)
{
    const char *wrong = settings_read(&plugin_settings, count, arguments);
    if (wrong != NULL)
        slurm_error("carma: plugstack.conf: '%s' is not an argument of libcarma_spank.so: socket=PATH spool=PATH "
                    "wait=SECONDS(1-60) others=none|all",
                    wrong);
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
    if ((!step_node_is_ours() && !has_options(spank)) || spank_get_item(spank, S_JOB_ID, &job) != ESPANK_SUCCESS)
        return 0;
    char node[64];
    const char *cluster = getenv("SLURM_CLUSTER_NAME");
    step_forget(job);
    step_read_node(spank, node);
    if (cluster != NULL)
        spool_put_text(plugin_settings.spool, job, "cluster", cluster);
    spool_put_text(plugin_settings.spool, job, "node", node);
    step_write_down(job, node);
    return 0;
}

/* Now and then slurmd runs no prolog for a job that starts again on a node that it had. The epilog has removed what
 * the first one wrote. And slurmctld may not have answered the prolog. */
static void make_up_for_prolog(spank_t spank)
{
    struct step step;
    char node[64];

    step_read(spank, &step);
    if (!step_node_is_ours() && !options.asked)
        return;
    if (!step.known)
        step_write_down(step.job, step.node);
    /* A batch step's environment is Slurm's, another's the user's word. */
    if (step.step != STEP_BATCH || spool_get_text(plugin_settings.spool, step.job, "node", node, sizeof(node)))
        return;
    spool_put_text(plugin_settings.spool, step.job, "cluster", step.cluster);
    spool_put_text(plugin_settings.spool, step.job, "node", step.node);
}

static const char *share_or_null(void)
{
    return options.share[0] != '\0' ? options.share : NULL;
}

/* A step without a prolog's word waits for its task, and the extern step has none. */
int slurm_spank_init_post_opt(spank_t spank, int count, char **arguments)
{
    struct step step;

    if (spank_remote(spank) != 1)
        return 0;
    step_read(spank, &step);
    if (step.step == STEP_BATCH)
        stderr_note = memfd_create("carma-stderr", MFD_CLOEXEC);
    if (step.step != STEP_EXTERN && step.counts.gpus > 0)
        grant_ask_ahead(spank, &step, share_or_null());
    return 0;
}

int slurm_spank_task_post_fork(spank_t spank, int count, char **arguments)
{
    grant_forget_ahead();
    return 0;
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
        ending_hand_back(step, -ENODATA, (struct json){0});
    else
        slurm_error("carma: Slurm counts no GPU for job %u on %s, so this step cannot have one: give --carma-mem or "
                    "--carma-gpus to sbatch or salloc",
                    step->job, step->node);
    return -1;
}

int slurm_spank_task_init_privileged(spank_t spank, int count, char **arguments)
{
    int64_t deadline_ms = http_now_ms() + plugin_settings.wait_ms;
    struct step step;
    make_up_for_prolog(spank);
    step_read(spank, &step);
    bool hidden = step.counts.gpus == 0 && step_node_is_ours() && !plugin_settings.others_all;
    if (step.counts.gpus > 0 || options.asked || hidden)
        spank_setenv(spank, "CUDA_VISIBLE_DEVICES", "", 1); /* whatever happens: no GPU that carmad has not given */
    int code = hidden && step.known ? others_hide_gpus() : 0;
    if (code != 0)
        slurm_debug("carma: job %u could open the device nodes of GPUs: %s", step.job, strerror(-code));
    if (step.counts.gpus == 0)
        return go_without(spank, &step);
    warn_of_more(&step);
    struct text answer = {0};
    code = grant_take(spank, &step, share_or_null(), deadline_ms, &answer);
    if (code != 0)
        ending_hand_back(&step, code, json_of(answer.bytes, answer.length));
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
    int code = run_tail(path, &user, http_now_ms() + TAIL_WAIT_MS, output);
    if (code != 0)
        slurm_error("carma: the end of %s cannot be read: %s", path, strerror(-code));
}

int slurm_spank_task_exit(spank_t spank, int count, char **arguments)
{
    struct step step;
    struct text output = {0};
    int64_t before = 0;
    int status = 0;

    read_settings(count, arguments);
    step_read(spank, &step);
    if (!step.known && step_node_is_ours()) { /* such an epilog has removed what the prolog wrote */
        step_write_down(step.job, step.node);
        step_read(spank, &step);
    }
    if (step.counts.gpus == 0)
        return 0;
    spank_get_item(spank, S_TASK_EXIT_STATUS, &status);
    if (step.step != STEP_BATCH) {
        /* The lease is the allocation's, which may have more steps. Where there is no batch script, the epilog tells
         * carmad the first failure. */
        if (!spool_get(plugin_settings.spool, step.job, "status", &before) || before == 0)
            spool_put(plugin_settings.spool, step.job, "status", status);
        return 0;
    }
    /* A script whose steps were ended may end by itself, whatever its status. */
    bool stopped = step_is_ended_by_slurm(&step);
    if (status != 0 && !stopped)
        read_output(spank, &output);
    ending_of_lease(&step, status, stopped, true, &output);
    text_release(&output);
    return 0;
}

/* The last word on a job on this node, also after a slurmstepd that was killed. */
int slurm_spank_job_epilog(spank_t spank, int count, char **arguments)
{
    read_settings(count, arguments);
    if (!step_node_is_ours())
        return 0;
    struct step step;
    step_read(spank, &step);
    int64_t status = 0;
    bool told = spool_get(plugin_settings.spool, step.job, "status", &status);
    bool left =
        !spool_await(plugin_settings.spool, step.job, step.restart, "end", 0); /* to the agent, with its output */
    /* Where slurmd was killed, the epilog of an earlier start may come when the job has begun again. */
    if ((step.known && step.counts.gpus == 0) || left ||
        ending_of_lease(&step, told ? (int)status : SIGTERM, !told, false, NULL))
        step_forget(step.job);
    return 0;
}
