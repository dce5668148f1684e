/* carma release */
#include "cli/cli.h"
#include "cli/commands.h"

const struct argp release_argp = {
    .options = cli_jobs_options,
    .parser = cli_parse_jobs,
    .args_doc = "IDS...",
    .doc = "Let held jobs be started.\vIDS are like 7, 1,3-5, 7_3 (of array 7) or @ (your last job).",
};
