/* The table of subcommands: usage, help, manual pages and completion are made from it. */
#ifndef CARMA_CLI_COMMANDS_H
#define CARMA_CLI_COMMANDS_H

#include <argp.h>
#include <stddef.h>

struct cli;

struct command {
    const char *name;
    const char *summary;     /* one line */
    const struct argp *argp; /* its options, arguments and longer text */
    /* argv[0] is the subcommand's name. Returns an exit status (cli.h). */
    int (*run)(struct cli *cli, int argc, char **argv);
};

/* Those that people and scripts type all day: the program `carma` has no others (main.c). */
extern const struct command daily_commands[];
extern const size_t daily_command_count;

/* The commands in the order of help, daily ones first; NULL behind the last. */
const struct command *command_at(size_t index);

/* A command, or one of a command's own ("trace build"); NULL: there is none. */
extern const struct command subcommands[]; /* of groups: their names have two words */
extern const size_t subcommand_count;
const struct command *command_find(const char *name);
void command_each(void (*visit)(const struct command *command, void *user), void *user); /* those of groups, too */
int command_unknown(const char *name); /* says so, and which one may be meant; the exit status */

int command_run(const struct command *command, struct cli *cli, int argc, char **argv);

/* What `carma submit` has, or has not, in place of an option of another program (job/submit_options.c); NULL: not
 * known. Owned by the caller. */
char *submit_option_of_others(const char *word);

/* One per file, cmd_NAME.c. */
#define VERB(name, record, order, listed, help, why) extern const struct argp name##_argp;
#include "api/job_verbs.def"
extern const struct argp dashboard_argp, doctor_argp;
extern const struct argp calibrate_argp, estimate_argp, submit_argp, queue_argp, show_argp, explain_argp, logs_argp,
    move_argp, edit_argp, wait_argp, run_argp, shell_argp, jupyter_argp, attach_argp, gpus_argp, monitor_argp,
    history_argp, report_argp, stats_argp, play_argp, compare_argp, simulate_argp, trace_argp, trace_build_argp,
    trace_show_argp, evaluate_argp, bench_argp, bench_collocate_argp, bench_monitor_argp, admin_argp, admin_backup_argp,
    admin_drain_argp, admin_gpu_argp, admin_learned_argp, admin_recover_argp, admin_reserve_argp, admin_resume_argp,
    admin_share_argp, admin_unreserve_argp, admin_verify_argp, share_argp, help_argp, top_argp;
int cmd_submit(struct cli *cli, int argc, char **argv);
int cmd_run(struct cli *cli, int argc, char **argv);
int cmd_shell(struct cli *cli, int argc, char **argv);
int cmd_jupyter(struct cli *cli, int argc, char **argv);
int cmd_attach(struct cli *cli, int argc, char **argv);
int cmd_queue(struct cli *cli, int argc, char **argv);
int cmd_show(struct cli *cli, int argc, char **argv);
int cmd_explain(struct cli *cli, int argc, char **argv);
int cmd_edit(struct cli *cli, int argc, char **argv);
int cmd_move(struct cli *cli, int argc, char **argv);
int cmd_logs(struct cli *cli, int argc, char **argv);
int cmd_wait(struct cli *cli, int argc, char **argv);
int cmd_gpus(struct cli *cli, int argc, char **argv);
int cmd_top(struct cli *cli, int argc, char **argv);
int cmd_monitor(struct cli *cli, int argc, char **argv);
int cmd_history(struct cli *cli, int argc, char **argv);
int cmd_report(struct cli *cli, int argc, char **argv);
int cmd_stats(struct cli *cli, int argc, char **argv);
int cmd_share(struct cli *cli, int argc, char **argv);
int cmd_doctor(struct cli *cli, int argc, char **argv);
int cmd_play(struct cli *cli, int argc, char **argv);
int cmd_compare(struct cli *cli, int argc, char **argv);
int cmd_simulate(struct cli *cli, int argc, char **argv);
int cmd_trace(struct cli *cli, int argc, char **argv);
int cmd_estimate(struct cli *cli, int argc, char **argv);
int cmd_calibrate(struct cli *cli, int argc, char **argv);
int cmd_evaluate(struct cli *cli, int argc, char **argv);
int cmd_bench(struct cli *cli, int argc, char **argv);
int cmd_dashboard(struct cli *cli, int argc, char **argv);
int cmd_admin_backup(struct cli *cli, int argc, char **argv);
int cmd_admin_drain(struct cli *cli, int argc, char **argv);
int cmd_admin_gpu(struct cli *cli, int argc, char **argv);
int cmd_admin_learned(struct cli *cli, int argc, char **argv);
int cmd_admin_recover(struct cli *cli, int argc, char **argv);
int cmd_admin_resume(struct cli *cli, int argc, char **argv);
int cmd_admin_share(struct cli *cli, int argc, char **argv);
int cmd_admin_reserve(struct cli *cli, int argc, char **argv);
int cmd_admin_unreserve(struct cli *cli, int argc, char **argv);
int cmd_admin_verify(struct cli *cli, int argc, char **argv);
int cmd_help(struct cli *cli, int argc, char **argv);

#endif
