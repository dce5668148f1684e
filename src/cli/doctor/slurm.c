/* carma doctor --slurm: Slurm's plugin, its configuration, the agent, and this node's counts. */
#include "cli/doctor/slurm.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/units.h"
#include "cli/child.h"
#include "cli/show/answer.h"

#define STEP        "carma-slurm-step"
#define SCONTROL_MS 20000 /* it gives slurmctld 10 s */

/* scontrol's output; NULL, with the finding why. Owned by the caller. */
static char *ask_slurm(struct doctor *doctor, const char *what, const char *name)
{
    const char *argv[] = {"/usr/bin/env", "scontrol", "show", what, name, name ? "-o" : NULL, NULL};
    struct cli_child answer;
    struct error err;
    char *out = NULL;

    if (cli_child_run(argv, -1, SCONTROL_MS, NULL, NULL, &answer, &err)) {
        doctor_find(doctor, "Slurm", DOCTOR_FAIL, NULL, "%s", err.text);
        return NULL;
    }
    if (!answer.hung && WIFEXITED(answer.status) && WEXITSTATUS(answer.status) == 0 && answer.out.length) {
        out = strbuf_steal(&answer.out);
    } else {
        const char *said = answer.errors.length ? answer.errors.text
                           : answer.out.length  ? answer.out.text
                                                : "no answer";
        doctor_find(doctor, "Slurm", DOCTOR_FAIL,
                    name ? "name the node as Slurm does: carma doctor --slurm=NODE"
                         : "install Slurm's commands, start slurmctld, and run carma doctor --slurm again",
                    "scontrol show %s%s%s: %.*s", what, name ? " " : "", name ? name : "", (int)strcspn(said, "\n"),
                    said);
    }
    cli_child_release(&answer);
    return out;
}

static void check_settings(struct doctor *doctor)
{
    if (doctor->config.engine != ENGINE_SLURM)
        doctor_find(doctor, "Slurm engine", DOCTOR_FAIL, "write engine = slurm into carma.conf, and restart carmad",
                    "engine = local: users submit to carmad, past Slurm's queue");
    else
        doctor_find(doctor, "Slurm engine", DOCTOR_OK, NULL, "engine = slurm");
    if (doctor->config.core.gate == GATE_MEMORY && doctor->config.share.mode != SHARE_TIME_SLICE)
        doctor_find(doctor, "Slurm gate", DOCTOR_WARN,
                    "write max_slowdown = 3 into carma.conf in place of gate, and restart carmad",
                    "gate = memory: jobs on a GPU slow one another without a bound");
    else
        doctor_find(doctor, "Slurm gate", DOCTOR_OK, NULL, "gate = %s",
                    doctor->config.core.gate == GATE_MEMORY ? "memory" : "all");
}

/* ---- The plugin ---- */

static void check_release(struct doctor *doctor, const char *path, const char *version)
{
    unsigned built[2], installed[2];
    struct error err;

    if (slurm_plugin_release(doctor, path, built, &err))
        doctor_find(doctor, "Slurm plugin", DOCTOR_FAIL, "install carma-slurm of this carma", "%s", err.text);
    else if (!version || sscanf(version, "%u.%u", &installed[0], &installed[1]) != 2)
        doctor_find(doctor, "Slurm plugin", DOCTOR_SKIP, NULL, "Slurm's version is not known: '%s'",
                    version ? version : "");
    else if (built[0] != installed[0] || built[1] != installed[1])
        doctor_find(doctor, "Slurm plugin", DOCTOR_FAIL,
                    "drain the node, and install the carma-slurm that was built with this Slurm",
                    "%s was built with Slurm %u.%02u; %s is installed: Slurm refuses jobs", path, built[0], built[1],
                    version);
    else
        doctor_find(doctor, "Slurm plugin", DOCTOR_OK, NULL, "%s, for Slurm %u.%02u", path, built[0], built[1]);
}

/* The plugin looks for it beside its own folder, by its real path, and takes root's alone (slurm/plugin/helper.c). */
static void check_step(struct doctor *doctor, const char *plugin)
{
    CLEANUP(free_ptr) char *below = doctor_path(doctor, plugin);
    CLEANUP(free_ptr) char *place = realpath(below, NULL);
    CLEANUP(free_ptr) char *step = NULL;
    CLEANUP(free_ptr) char *remedy = NULL;
    uid_t owner = *doctor->root ? geteuid() : 0; /* a test need not be root */
    struct stat st;

    for (int up = 0; up < 2 && place && strrchr(place, '/'); up++)
        *strrchr(place, '/') = '\0';
    step = xasprintf("%s/" STEP, place ? place : "");
    remedy = xasprintf("chown root:root %s && chmod 755 %s", step, step);
    if (stat(step, &st) != 0 || !S_ISREG(st.st_mode))
        doctor_find(doctor, "Slurm step", DOCTOR_FAIL, "install carma-slurm again",
                    "%s, which the plugin starts, is missing: no step starts on this node", step);
    else if ((st.st_mode & (S_IXUSR | S_IXGRP | S_IXOTH)) == 0)
        doctor_find(doctor, "Slurm step", DOCTOR_FAIL, remedy,
                    "%s, which the plugin starts, is not executable: no step starts on this node", step);
    else if (st.st_uid != owner || (st.st_mode & (S_IWGRP | S_IWOTH)) != 0)
        doctor_find(doctor, "Slurm step", DOCTOR_FAIL, remedy,
                    "%s is not root's alone, so the plugin does not start it: no step starts on this node", step);
    else
        doctor_find(doctor, "Slurm step", DOCTOR_OK, NULL, "the plugin starts %s, which is root's alone", step);
}

static void check_plugin(struct doctor *doctor, const char *config, const char *node)
{
    CLEANUP(free_ptr) char *stack = slurm_config_value(config, "PlugStackConfig");
    CLEANUP(free_ptr) char *folders = slurm_config_value(config, "PluginDir");
    CLEANUP(free_ptr) char *version = slurm_config_value(config, "SLURM_VERSION");
    bool required = false;
    CLEANUP(free_ptr) char *plugin = stack ? slurm_plugstack_find(doctor, stack, &required) : NULL;
    CLEANUP(free_ptr) char *path = NULL;

    if (plugin)
        doctor_find(doctor, "plugstack", DOCTOR_OK, NULL, "%s names %s", stack, plugin);
    else
        doctor_find(doctor, "plugstack", DOCTOR_FAIL,
                    "copy /usr/share/carma/slurm/plugstack.conf.d/carma.conf to the folder that it includes",
                    "%s does not name libcarma_spank.so: jobs get no GPUs from carma",
                    stack ? stack : "plugstack.conf");
    path = slurm_plugin_place(doctor, plugin ? plugin : "libcarma_spank.so", folders ? folders : "");
    if (path) {
        check_release(doctor, path, version);
        check_step(doctor, path);
    } else {
        doctor_find(doctor, "Slurm plugin", DOCTOR_FAIL, "install carma-slurm, or take it from plugstack.conf",
                    "%s is not in %s: sbatch fails while plugstack.conf names it",
                    plugin ? plugin : "libcarma_spank.so", folders ? folders : "PluginDir");
    }
    if (plugin)
        slurm_try_hosts(doctor, node, plugin, folders ? folders : "", required);
}

/* ---- The configuration ---- */

static void check_lua(struct doctor *doctor, const char *config)
{
    static const struct {
        const char *check, *setting, *file, *without;
    } files[] = {
        {"job_submit", "JobSubmitPlugins", "job_submit.lua", "nothing turns carma's options into counts of memory"},
        {"cli_filter", "CliFilterPlugins", "cli_filter.lua",
         "--carma-summary and --carma-capture=auto estimate nothing, and steps wait for one another"},
    };

    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        CLEANUP(free_ptr) char *plugins = slurm_config_value(config, files[i].setting);
        CLEANUP(free_ptr)
        char *remedy =
            xasprintf("write %s=lua into slurm.conf, and copy %s beside it", files[i].setting, files[i].file);
        if (plugins && strstr(plugins, "lua"))
            doctor_find(doctor, files[i].check, DOCTOR_OK, NULL, "%s=%s", files[i].setting, plugins);
        else
            doctor_find(doctor, files[i].check, DOCTOR_WARN, remedy, "%s has no lua: %s", files[i].setting,
                        files[i].without);
    }
}

static void check_requeue(struct doctor *doctor, const char *config)
{
    CLEANUP(free_ptr) char *requeue = slurm_config_value(config, "JobRequeue");

    if (requeue && strcmp(requeue, "0") == 0)
        doctor_find(doctor, "Slurm requeue", DOCTOR_WARN, "write JobRequeue=1 into slurm.conf",
                    "JobRequeue=0: a job without --requeue fails where carma would start it again");
    else
        doctor_find(doctor, "Slurm requeue", DOCTOR_OK, NULL, "JobRequeue=%s", requeue ? requeue : "1");
}

/* Slurm would show a job the GPUs that Slurm chose, and hide those that carmad chose. */
static void check_devices_of(struct doctor *doctor, const char *config)
{
    CLEANUP(free_ptr) char *own = slurm_config_value(config, "SLURM_CONF");
    CLEANUP(free_ptr) char *tasks = slurm_config_value(config, "TaskPlugin");
    int folder = own && strrchr(own, '/') ? (int)(strrchr(own, '/') - own) : 0;
    CLEANUP(free_ptr) char *cgroup = xasprintf("%.*s/cgroup.conf", folder, own ? own : "");
    CLEANUP(free_ptr) char *gres = xasprintf("%.*s/gres.conf", folder, own ? own : "");
    bool constrains =
        tasks && strstr(tasks, "cgroup") && slurm_file_says(doctor, cgroup, "ConstrainDevices", "yes", NULL);
    bool has_files = slurm_file_says(doctor, gres, "Name", "gpu", "File") ||
                     slurm_file_says(doctor, gres, "AutoDetect", "nvml", NULL);

    if (constrains && has_files)
        doctor_find(doctor, "Slurm devices", DOCTOR_WARN,
                    "take gres/gpu from gres.conf on nodes that carma shares, or ConstrainDevices from cgroup.conf",
                    "ConstrainDevices=yes, and %s gives gres/gpu files: Slurm hides the GPUs that carmad chose", gres);
    else
        doctor_find(doctor, "Slurm devices", DOCTOR_OK, NULL, "Slurm hides no GPU that carmad chooses");
}

static void check_agent(struct doctor *doctor)
{
    if (doctor_runs(doctor, "carma-slurm-age"))
        doctor_find(doctor, "Slurm agent", DOCTOR_OK, NULL, "carma-slurm-agent runs");
    else
        doctor_find(doctor, "Slurm agent", DOCTOR_FAIL, "systemctl enable --now carma-slurm-agent",
                    "carma-slurm-agent does not run: no job goes back to the queue, none that was refused starts");
}

/* ---- Counts ---- */

int64_t slurm_count_of(const char *list, const char *name)
{
    size_t length = strlen(name);

    for (const char *at = list; at && *at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
        const char *entry = strncmp(at, "gres:", 5) == 0 || strncmp(at, "gres/", 5) == 0 ? at + 5 : at;
        CLEANUP(free_ptr) char *value = NULL;
        int64_t count;
        if (strncmp(entry, name, length) != 0 || entry[length] != ':')
            continue;
        value = xstrndup(entry + length + 1, strcspn(entry + length + 1, ",("));
        if (parse_integer(value, 0, INT64_MAX, &count, NULL) == 0 || parse_size(value, &count, NULL) == 0)
            return count;
    }
    return -1;
}

static void compare_memory(struct doctor *doctor, const char *node, int64_t counted, int64_t there)
{
    char slurms[UNITS_TEXT], ours[UNITS_TEXT];

    if (counted < 0)
        doctor_find(doctor, "gpumem", DOCTOR_FAIL,
                    "give the node Gres=gpumem:... in slurm.conf, and gres.conf its line",
                    "Slurm counts no gpumem on %s: no job that asks for GPU memory can start", node);
    else if (slurm_differs(counted, there))
        doctor_find(doctor, "gpumem", DOCTOR_WARN, "correct Gres= in slurm.conf and Count= in gres.conf",
                    "Slurm counts %s on %s; its GPUs have %s", format_bytes(counted, slurms), node,
                    format_bytes(there, ours));
    else
        doctor_find(doctor, "gpumem", DOCTOR_OK, NULL, "Slurm counts %s on %s; its GPUs have %s",
                    format_bytes(counted, slurms), node, format_bytes(there, ours));
}

static void compare_counts(struct doctor *doctor, const char *node, const char *list, const json_t *capacity)
{
    int64_t gpus = answer_integer(capacity, "gpus", 0), usable = gpus - answer_integer(capacity, "lost", 0), sum = 0;
    int64_t big = slurm_count_of(list, "gpubig");
    json_t *bytes;
    size_t i;

    json_array_foreach (json_object_get(capacity, "memory_bytes"), i, bytes)
        sum += json_integer_value(bytes);
    compare_memory(doctor, node, slurm_count_of(list, "gpumem"), gpus ? sum / gpus * usable : 0);
    if (big == usable)
        doctor_find(doctor, "gpubig", DOCTOR_OK, NULL, "Slurm counts %" PRId64 " on %s: one for each GPU", big, node);
    else
        doctor_find(doctor, "gpubig", DOCTOR_WARN, "correct Gres= in slurm.conf and Count= in gres.conf",
                    "Slurm counts %" PRId64 " on %s, which has %" PRId64
                    " GPUs: large requests are refused there, or wait "
                    "for nothing",
                    big < 0 ? 0 : big, node, usable);
}

static void check_counts(struct doctor *doctor, const char *node)
{
    CLEANUP(json_release) json_t *capacity = NULL;
    CLEANUP(free_ptr) char *line = ask_slurm(doctor, "node", node);
    const char *at = line ? strstr(line, " Gres=") : NULL;
    CLEANUP(free_ptr) char *list = at ? xstrndup(at + 6, strcspn(at + 6, " \n")) : NULL;
    int64_t least = 0;
    struct error err;
    json_t *bytes;
    size_t i;

    if (!line)
        return;
    if (doctor_ask(doctor, "/v1/capacity", &capacity, &err))
        doctor_find(doctor, "gpumem", DOCTOR_SKIP, "start carmad: it says how much memory the GPUs have", "%s",
                    err.text);
    else
        compare_counts(doctor, node, list, capacity);
    json_array_foreach (json_object_get(capacity, "memory_bytes"), i, bytes)
        if (!least || json_integer_value(bytes) < least)
            least = json_integer_value(bytes);
    slurm_try_counts(doctor, node, line, least);
}

void doctor_check_slurm(struct doctor *doctor, const char *node)
{
    CLEANUP(free_ptr) char *config = NULL;
    char host[64] = "";

    gethostname(host, sizeof host - 1);
    host[strcspn(host, ".")] = '\0';
    check_settings(doctor);
    check_agent(doctor);
    config = ask_slurm(doctor, "config", NULL);
    if (!config)
        return;
    node = *node ? node : host;
    check_plugin(doctor, config, node);
    check_lua(doctor, config);
    check_requeue(doctor, config);
    check_devices_of(doctor, config);
    check_counts(doctor, node);
}
