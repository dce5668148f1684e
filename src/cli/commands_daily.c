#include "base/memory.h"
#include "cli/cli.h"
#include "cli/commands.h"

const struct command daily_commands[] = {
    {"submit", "submit jobs: a job file, a script with #CARMA lines, or a command", &submit_argp, cmd_submit},
    {"run", "run a command on GPUs from here: its input, output and keys are this terminal's", &run_argp, cmd_run},
    {"shell", "a login shell on GPUs", &shell_argp, cmd_shell},
    {"jupyter", "JupyterLab on GPUs: its address, and the line that brings it to your browser", &jupyter_argp,
     cmd_jupyter},
    {"attach", "come back to a job of carma run or carma shell", &attach_argp, cmd_attach},
    {"queue", "list the jobs that wait or run", &queue_argp, cmd_queue},
    {"show", "show everything about a job", &show_argp, cmd_show},
    {"explain", "say why a job waits, GPU by GPU", &explain_argp, cmd_explain},
#define VERB(name, record, order, listed, help, why) {#name, listed, &name##_argp, cli_change},
#include "api/job_verbs.def"
    {"edit", "change what waiting jobs ask for", &edit_argp, cmd_edit},
    {"move", "put a waiting job before or behind others of yours", &move_argp, cmd_move},
    {"logs", "print the output of a job", &logs_argp, cmd_logs},
    {"wait", "wait until jobs have ended, and exit as they did; or until they have come so far", &wait_argp, cmd_wait},
    {"gpus", "list the GPUs: memory, activity, power, jobs", &gpus_argp, cmd_gpus},
};
const size_t daily_command_count = array_size(daily_commands);

int command_run(const struct command *command, struct cli *cli, int argc, char **argv)
{
    cli->argp = command->argp;
    return command->run(cli, argc, argv);
}
