/* carma hold */
#include "cli/cli.h"
#include "cli/commands.h"

const struct argp hold_argp = {
    .options = cli_jobs_options,
    .parser = cli_parse_jobs,
    .args_doc = "IDS...",
    .doc = "Keep waiting jobs from being started until they are released.\vIDS are like 7, 1,3-5, 7_3 (of array 7) or "
           "@ (your last job).",
};
