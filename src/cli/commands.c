#include "cli/commands.h"

#include <string.h>

#include "base/memory.h"
#include "base/text/nearest.h"
#include "cli/cli.h"

static const struct command other_commands[] = {
    {"top", "watch GPUs, jobs and the queue on one screen, and act on them", &top_argp, cmd_top},
    {"monitor", "log the GPUs' metrics as CSV, without a daemon", &monitor_argp, cmd_monitor},
    {"history", "list jobs that have ended, years back", &history_argp, cmd_history},
    {"stats", "sum up the usage of jobs: by user, name, time", &stats_argp, cmd_stats},
    {"report", "sum up a month by user and project", &report_argp, cmd_report},
    {"share", "show each user's share of the GPUs and his use of late", &share_argp, cmd_share},
    {"dashboard", "show the GPUs and the queue in a browser", &dashboard_argp, cmd_dashboard},
    {"play", "submit a trace's jobs at their times and report on them", &play_argp, cmd_play},
    {"compare", "print the reports of several plays side by side", &compare_argp, cmd_compare},
    {"simulate", "run a trace on a virtual clock under one policy or several", &simulate_argp, cmd_simulate},
    {"estimate", "say how much GPU memory a job will need, before it starts", &estimate_argp, cmd_estimate},
    {"calibrate", "measure this machine's addition to a job's memory", &calibrate_argp, cmd_calibrate},
    {"evaluate", "compare an estimator with measured runs", &evaluate_argp, cmd_evaluate},
    {"trace", "build workload traces from published ones; show the content of one", &trace_argp, cli_run_group},
    {"bench", "measure the cost of metrics, and the effects of sharing a GPU", &bench_argp, cli_run_group},
    {"doctor", "find out why carma does not work here", &doctor_argp, cmd_doctor},
    {"admin", "check the daemon's store, copy and recover it; see what it has learned", &admin_argp, cli_run_group},
    {"help", "explain a command", &help_argp, cmd_help},
};

/* Those of the groups (group.c), which call them with argv[0] as it stands here. */
const struct command subcommands[] = {
    {"admin backup", "copy the store of a daemon, which may be running", &admin_backup_argp, cmd_admin_backup},
    {"admin drain", "let no further job come to a GPU, or to any", &admin_drain_argp, cmd_admin_drain},
    {"admin gpu", "open a GPU on which programs did not start", &admin_gpu_argp, cmd_admin_gpu},
    {"admin learned", "show what runs have taught, by user and workload, or forget it", &admin_learned_argp,
     cmd_admin_learned},
    {"admin recover", "go on with a store of which a part is lost", &admin_recover_argp, cmd_admin_recover},
    {"admin reserve", "reserve GPUs for users from a time to another, or list reservations", &admin_reserve_argp,
     cmd_admin_reserve},
    {"admin resume", "let jobs come again where none were to", &admin_resume_argp, cmd_admin_resume},
    {"admin share", "give a user a share of the GPUs", &admin_share_argp, cmd_admin_share},
    {"admin unreserve", "take a reservation of GPUs back", &admin_unreserve_argp, cmd_admin_unreserve},
    {"admin verify", "check a store for damage, record by record", &admin_verify_argp, cmd_admin_verify},
    {"bench collocate", "measure the effects of sharing a GPU on training jobs", &bench_collocate_argp, cmd_bench},
    {"bench monitor", "measure the cost of watching a GPU, and its metrics", &bench_monitor_argp, cmd_bench},
    {"trace build", "make a trace for a server from a published one", &trace_build_argp, cmd_trace},
    {"trace show", "show the demand of a trace", &trace_show_argp, cmd_trace},
};
const size_t subcommand_count = sizeof subcommands / sizeof *subcommands;

const struct command *command_at(size_t index)
{
    if (index < daily_command_count)
        return &daily_commands[index];
    index -= daily_command_count;
    return index < array_size(other_commands) ? &other_commands[index] : NULL;
}

const struct command *command_find(const char *name)
{
    for (size_t i = 0; command_at(i); i++) {
        if (strcmp(command_at(i)->name, name) == 0)
            return command_at(i);
    }
    for (size_t i = 0; i < subcommand_count; i++) {
        if (strcmp(subcommands[i].name, name) == 0)
            return &subcommands[i];
    }
    return NULL;
}

void command_each(void (*visit)(const struct command *command, void *user), void *user)
{
    for (size_t i = 0; command_at(i); i++)
        visit(command_at(i), user);
    for (size_t i = 0; i < subcommand_count; i++)
        visit(&subcommands[i], user);
}

/* What other programs call it. */
static const char *of_others(const char *name)
{
    static const struct {
        const char *own, *others;
    } rows[] = {
        {"submit", " sbatch qsub bsub start launch add enqueue exec "},
        {"run", " srun "},
        {"shell", " salloc "},
        {"attach", " sattach "},
        {"queue", " squeue qstat bjobs ps ls list jobs status "},
        {"show", " info describe inspect scontrol get "},
        {"explain", " why "},
        {"cancel", " scancel qdel bkill kill stop rm remove delete abort "},
        {"release", " unhold "},
        {"resume", " continue cont unpause unsuspend "},
        {"suspend", " pause freeze "},
        {"requeue", " restart rerun "},
        {"logs", " tail cat output attach follow "},
        {"gpus", " sinfo nvidia-smi smi gpustat nvitop nodes devices "},
        {"top", " htop nvtop watch "},
        {"history", " sacct "},
        {"stats", " sreport usage report "},
    };
    CLEANUP(free_ptr) char *word = xasprintf(" %s ", name);

    for (size_t i = 0; i < array_size(rows); i++)
        if (strstr(rows[i].others, word))
            return rows[i].own;
    return NULL;
}

int command_unknown(const char *name)
{
    CLEANUP(free_ptr) char *question = NULL;
    struct nearest nearest;

    if (of_others(name)) {
        cli_fail("there is no command '%.40s': did you mean %s? (see: carma help)", name, of_others(name));
        return CLI_USAGE;
    }
    for (size_t i = 0; i < subcommand_count; i++)
        if (strcmp(strchr(subcommands[i].name, ' ') + 1, name) == 0) {
            cli_fail("there is no command '%.40s': did you mean %s? (see: carma help)", name, subcommands[i].name);
            return CLI_USAGE;
        }
    nearest_begin(&nearest, name);
    for (size_t i = 0; command_at(i); i++)
        nearest_try(&nearest, command_at(i)->name);
    question = nearest_question(&nearest, "");
    cli_fail("there is no command '%.40s'%s (see: carma help)", name, question);
    return CLI_USAGE;
}
