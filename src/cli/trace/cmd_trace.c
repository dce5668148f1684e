/* carma trace: its commands, build and show. */
#include "cli/cli.h"
#include "cli/commands.h"

const struct argp trace_argp = {
    .parser = cli_parse_group,
    .args_doc = "build|show FILE",
    .doc = "Work on traces of training jobs: 'carma trace build' makes one for a server from a published one. 'carma "
           "trace show' shows the demand of one."
           "\v'carma help trace build' and 'carma help trace show' explain them. Which files are understood: "
           "docs/formats/trace.md.",
};
