/* libcarma_spank.so: the GPUs of a Slurm job on this node are a lease of its carmad. Slurm does the counting of memory
 * and GPUs, and what it has counted decides, whatever a step's options and environment say. The plugin gathers what
 * Slurm tells of a step, hands it to carma-slurm-step (helper.h), which does the work, and sets the variables that this
 * answers with. No callback fails but task_init_privileged, where a failure ends the task alone: anywhere else Slurm
 * would drain the node. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "slurm/plugin/helper.h"
#include "slurm/plugin/plugin.h"
#include "slurm/plugin/record.h"
#include "slurm/plugin/spank.h"

#pragma GCC visibility push(default) /* Slurm looks these names up */
SPANK_PLUGIN(carma, 1)
#pragma GCC visibility pop

/* Which Slurm the file fits, for `carma doctor --slurm`, which looks for these bytes and does not load it. */
static const struct {
    char mark[16];
    uint32_t version;
} built __attribute__((used)) = {"carma_spank_for", SLURM_VERSION_NUMBER};

#define STEP_BATCH       UINT32_C(0xfffffffb)
#define STEP_EXTERN      UINT32_C(0xfffffffc)
#define STEP_INTERACTIVE UINT32_C(0xfffffffa)

enum {
    QUERY_WAIT_MS = 3000,
    /* What the helper's own waits add up to (src/slurm/step), and 2 s. */
    PROLOG_MS = 2000 + QUERY_WAIT_MS,
    START_MS = 5000 + 20000 + 2000 + QUERY_WAIT_MS,        /* beside wait= */
    EXIT_MS = 30000 + 20000 + 3000 + 2000 + QUERY_WAIT_MS, /* less than UnkillableStepTimeout, which drains the node */
    EPILOG_MS = 5000 + 5000 + 2000,
    COMMAND_BYTES = 64 << 10,
};

struct settings plugin_settings;
static struct options options = {.gpus = 1};
static int stderr_note = -1; /* a file without a name: the batch task writes there where its standard error goes */
static struct helper ahead = {.fd = -1}; /* begins with the step, before it has a task */

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

/* Whether carma gives this node's GPUs: its agent has made the spool. */
static bool node_is_ours(void)
{
    return access(plugin_settings.spool, F_OK) == 0;
}

/* ---- What Slurm tells of a step ---- */

static void say_text(FILE *request, const char *name, const char *value)
{
    fprintf(request, "%s=", name);
    for (; *value != '\0'; value++)
        fputc((unsigned char)*value < ' ' || *value == 0x7f ? ' ' : *value, request);
    fputc('\n', request);
}

static void say_number(FILE *request, const char *name, long long value)
{
    fprintf(request, "%s=%lld\n", name, value);
}

static void say_settings(FILE *request)
{
    say_text(request, "socket", plugin_settings.socket);
    say_text(request, "spool", plugin_settings.spool);
    say_number(request, "wait_ms", plugin_settings.wait_ms);
    say_number(request, "others_all", plugin_settings.others_all);
    say_number(request, "asked", options.asked);
    say_number(request, "asked_gpus", options.gpus);
    say_number(request, "asked_memory", options.memory_bytes);
    say_text(request, "share", options.share);
}

/* Of srun's steps they are the user's word; of a prolog or epilog, the process's own, they are Slurm's. */
static void say_variables(FILE *request, spank_t spank)
{
    static const char *const names[] = {"SLURMD_NODENAME",  "SLURM_CLUSTER_NAME",  "SLURM_JOB_NAME",
                                        "SLURM_SUBMIT_DIR", "SLURM_GPUS_PER_TASK", "SLURM_TRES_PER_TASK",
                                        "SLURM_HET_SIZE"};
    char value[4096];

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const char *own = getenv(names[i]);
        if (spank_getenv(spank, names[i], value, sizeof(value)) == ESPANK_SUCCESS)
            say_text(request, names[i], value);
        else if (own != NULL)
            say_text(request, names[i], own);
    }
}

/* A batch script's file, and the words of what a step executes. */
static void say_command(FILE *request, spank_t spank)
{
    int count = 0;
    char **words = NULL, command[COMMAND_BYTES];
    size_t length = 0;

    if (spank_get_item(spank, S_JOB_ARGV, &count, &words) != ESPANK_SUCCESS || count < 1)
        return;
    say_text(request, "script", words[0]);
    for (int i = 0; i < count && length < sizeof(command); i++)
        length += (size_t)snprintf(command + length, sizeof(command) - length, "%s%s", i > 0 ? " " : "", words[i]);
    say_text(request, "command", command);
}

static void say_groups(FILE *request, spank_t spank)
{
    gid_t *groups = NULL;
    int count = 0;

    if (spank_get_item(spank, S_JOB_SUPPLEMENTARY_GIDS, &groups, &count) != ESPANK_SUCCESS)
        return;
    fputs("groups=", request);
    for (int i = 0; i < count; i++)
        fprintf(request, "%s%u", i > 0 ? "," : "", (unsigned)groups[i]);
    fputc('\n', request);
}

static void say_step(FILE *request, spank_t spank)
{
    uint32_t job = 0, step = 0;
    uid_t uid = 0;
    gid_t gid = 0;

    spank_get_item(spank, S_JOB_ID, &job);
    say_number(request, "job", job);
    if (spank_get_item(spank, S_JOB_STEPID, &step) == ESPANK_SUCCESS) {
        if (step == STEP_BATCH || step == STEP_EXTERN || step == STEP_INTERACTIVE)
            say_text(request, "step", step == STEP_BATCH ? "batch" : step == STEP_EXTERN ? "extern" : "interactive");
        else
            say_number(request, "step", step);
    }
    if (spank_get_item(spank, S_JOB_UID, &uid) == ESPANK_SUCCESS &&
        spank_get_item(spank, S_JOB_GID, &gid) == ESPANK_SUCCESS) {
        say_number(request, "uid", uid);
        say_number(request, "gid", gid);
    }
}

static void say_to(struct helper *helper, void (*what)(FILE *request, spank_t spank), spank_t spank)
{
    char *text = NULL;
    size_t length = 0;
    FILE *request = open_memstream(&text, &length);

    if (request == NULL)
        return; /* the helper waits in vain, and is told so */
    what(request, spank);
    fputc('\n', request);
    if (fclose(request) == 0)
        helper_say(helper, text, length);
    free(text);
}

static void say_all(FILE *request, spank_t spank)
{
    say_settings(request);
    say_step(request, spank);
    say_variables(request, spank);
    say_command(request, spank);
    say_groups(request, spank);
}

static void say_task(FILE *request, spank_t spank)
{
    int task = 0;

    spank_get_item(spank, S_TASK_ID, &task);
    say_number(request, "task", task);
    say_number(request, "pid", getpid());
    say_number(request, "parent", getppid());
}

/* How the task ended, and where its standard error went. */
static void say_end(FILE *request, spank_t spank)
{
    char path[4097];
    int status = 0;
    ssize_t length = stderr_note >= 0 ? pread(stderr_note, path, sizeof(path) - 1, 0) : -1;

    spank_get_item(spank, S_TASK_EXIT_STATUS, &status);
    say_number(request, "status", status);
    if (length > 0) {
        path[length] = '\0';
        say_text(request, "stderr", path);
    }
}

/* What slurmctld counts for the job on the node. */
static void say_count(struct helper *helper, spank_t spank, const char *node)
{
    struct record record = {0};
    uint32_t job = 0;
    char text[256];

    spank_get_item(spank, S_JOB_ID, &job);
    int code = record_ask(job, node, helper_now_ms() + QUERY_WAIT_MS, &record);
    int length = snprintf(text, sizeof(text), "code=%d\ngpus=%lld\ngpumem=%lld\nguess=%d\nrestart=%u\nrunning=%d\n\n",
                          code, (long long)record.counts.gpus, (long long)record.counts.memory_bytes,
                          record.counts.guess, record.restart, record.running);
    helper_say(helper, text, (size_t)length);
}

/* ---- What the helper answers ---- */

/* 0 or 1, its last word; -1 with a fault. */
static int obey(struct helper *helper, spank_t spank, int64_t deadline_ms)
{
    const char *line;

    while ((line = helper_hear(helper, deadline_ms)) != NULL) {
        const char *rest = strchr(line, ' ') != NULL ? strchr(line, ' ') + 1 : line;
        const char *equals = strchr(rest, '=');
        char name[128];

        if (strncmp(line, "count ", 6) == 0) {
            say_count(helper, spank, rest);
        } else if (strncmp(line, "set ", 4) == 0 && equals != NULL && (size_t)(equals - rest) < sizeof(name)) {
            snprintf(name, sizeof(name), "%.*s", (int)(equals - rest), rest);
            spank_setenv(spank, name, equals + 1, 1);
        } else if (strncmp(line, "unset ", 6) == 0) {
            spank_unsetenv(spank, rest);
        } else if (strncmp(line, "error ", 6) == 0) {
            slurm_error("carma: %s", rest);
        } else if (strncmp(line, "debug ", 6) == 0) {
            slurm_debug("carma: %s", rest);
        } else if (strcmp(line, "end 0") == 0 || strcmp(line, "end 1") == 0) {
            return line[4] - '0';
        } else {
            helper->fault = "says what this plugin does not know: install carma-slurm again";
            break;
        }
    }
    return -1;
}

/* The whole conversation, with another helper where the first one was killed: all that it does may be done twice.
 * `begun` may be NULL; `fails` says what the job does where none is of use. */
static int converse(spank_t spank, const char *verb, const char *fails, struct helper *begun,
                    void (*more)(FILE *request, spank_t spank), int64_t patience_ms)
{
    int64_t deadline_ms = helper_now_ms() + patience_ms;
    struct helper helper = {.fd = -1};
    uint32_t job = 0;
    int said = -1;

    for (int tries = 0; tries < 2 && said < 0 && (tries == 0 || helper.lost); tries++) {
        if (begun != NULL && tries == 0)
            helper = *begun;
        else if (helper_start(&helper, verb))
            say_to(&helper, say_all, spank);
        if (helper.fd < 0)
            break;
        if (more != NULL)
            say_to(&helper, more, spank);
        said = obey(&helper, spank, deadline_ms);
        helper_leave(&helper, true);
    }
    spank_get_item(spank, S_JOB_ID, &job);
    if (said < 0)
        slurm_error("carma: job %u %s: %s %s", job, fails, helper_path, helper.fault);
    return said;
}

/* ---- The callbacks ---- */

int slurm_spank_job_prolog(spank_t spank, int count, char **arguments)
{
    read_settings(count, arguments);
    if (node_is_ours() || has_options(spank))
        converse(spank, "prolog", "has unknown counts", NULL, NULL, PROLOG_MS);
    return 0;
}

/* carmad stores and places the lease while slurmstepd sets the step up. The extern step has no task. */
int slurm_spank_init_post_opt(spank_t spank, int count, char **arguments)
{
    uint32_t step = STEP_EXTERN;

    if (spank_remote(spank) != 1 || spank_get_item(spank, S_JOB_STEPID, &step) != ESPANK_SUCCESS || step == STEP_EXTERN)
        return 0;
    if (step == STEP_BATCH)
        stderr_note = memfd_create("carma-stderr", MFD_CLOEXEC);
    if ((node_is_ours() || options.asked) && helper_start(&ahead, "start"))
        say_to(&ahead, say_all, spank);
    return 0;
}

/* The task has it now. */
int slurm_spank_task_post_fork(spank_t spank, int count, char **arguments)
{
    helper_leave(&ahead, false);
    return 0;
}

/* The answer to the step's own helper is heard by its first task here. */
int slurm_spank_task_init_privileged(spank_t spank, int count, char **arguments)
{
    int task = 0;
    bool first = ahead.fd >= 0 && spank_get_item(spank, S_TASK_ID, &task) == ESPANK_SUCCESS && task == 0;

    if (!node_is_ours() && !options.asked)
        return 0;
    if (!first)
        helper_leave(&ahead, false);
    return converse(spank, "start", "cannot start here", first ? &ahead : NULL, say_task,
                    plugin_settings.wait_ms + START_MS) == 0
               ? 0
               : -1;
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

/* A script's end, and of steps the first that went well and the first that failed: the helper keeps no more. */
int slurm_spank_task_exit(spank_t spank, int count, char **arguments)
{
    static bool told[2];
    int status = 0;

    read_settings(count, arguments);
    spank_get_item(spank, S_TASK_EXIT_STATUS, &status);
    if (!node_is_ours() || told[status != 0])
        return 0;
    told[status != 0] = converse(spank, "exit", "has ended, and carmad is not told", NULL, say_end, EXIT_MS) == 0;
    return 0;
}

/* The last word on a job on this node, also after a slurmstepd that was killed. */
int slurm_spank_job_epilog(spank_t spank, int count, char **arguments)
{
    read_settings(count, arguments);
    if (node_is_ours())
        converse(spank, "epilog", "has ended, and carmad is not told", NULL, NULL, EPILOG_MS);
    return 0;
}
