/* carma cancel */
#include "cli/cli.h"
#include "cli/commands.h"

const struct argp cancel_argp = {
    .options = cli_jobs_options,
    .parser = cli_parse_jobs,
    .args_doc = "IDS...",
    .doc = "Stop running jobs, and take waiting ones out of the queue.\vIDS are like 7, 1,3-5, 7_3 (of array 7) or @ "
           "(your last job).",
};
