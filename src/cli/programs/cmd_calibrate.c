/* carma calibrate: carma-program measures. The built-in profiles are listed here. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/units.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/programs/programs.h"
#include "cli/show/table.h"
#include "cli/show/term.h"
#include "estimate/profile.h"

struct calibrate_command {
    struct program_words program;
    bool list;
};

enum { KEY_LIST = 0x200 };

static const struct argp_option options[] = {
    {"output", 'o', "FILE", 0, "write the profile there (default: print it)", 0},
    {"list", KEY_LIST, NULL, 0, "list the built-in profiles", 0},
    {0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct calibrate_command *calibrate = state->input;

    switch (key) {
    case KEY_LIST:
        calibrate->list = true;
        return 0;
    case ARGP_KEY_END:
        return calibrate->list && calibrate->program.count > 2 ? cli_bad_usage(state, "--list goes alone") : 0;
    default:
        return words_pass(&calibrate->program, key, arg, state);
    }
}

const struct argp calibrate_argp = {
    .options = options,
    .parser = parse,
    .doc = "Measure the memory that this machine adds to a job's tensors: CUDA's context, the framework's libraries, "
           "cuDNN. It takes an empty context and one tiny training step of PyTorch's (that of python3 on the PATH) on "
           "CUDA's first GPU. Nothing else may run there."
           "\vThe profile is for carma estimate --profile and for carmad's machine_profile (docs/formats/profile.md). "
           "Exit status: 69 where there is no GPU.",
};

static int list_profiles(void)
{
    static const struct table_column columns[] = {
        {"PROFILE", false, 0, 0}, {"GPU", false, 0, 0},      {"FOR JOBS", true, 0, 0},
        {"CONTEXT", true, 0, 0},  {"CUDNN", true, 0, 0},     {"SMS", true, 0, 3},
        {"CLOCK", true, 0, 4},    {"BANDWIDTH", true, 0, 5}, {"SOURCE", false, 16, 2, false},
    };
    struct table *table = table_new(columns, array_size(columns));
    const struct machine_profile *p;
    char text[UNITS_TEXT];

    for (size_t i = 0; (p = machine_profile_builtin(i)); i++) {
        const char *mark = strstr(p->source, "assumed") ? "~" : "";
        table_cell(table, STYLE_NONE, "%s", p->name);
        table_cell(table, STYLE_NONE, "%s", p->gpu);
        table_cell(table, STYLE_NONE, "%s", format_bytes(p->memory_bytes, text));
        table_cell(table, STYLE_NONE, "%s%" PRId64 " MiB", mark, p->context_bytes / MIB);
        table_cell(table, STYLE_NONE, "%s%" PRId64 " MiB", mark, p->cudnn_bytes / MIB);
        table_cell(table, STYLE_NONE, "%" PRId32, p->sm_count);
        table_cell(table, STYLE_NONE, "%" PRId32 " MHz", p->sm_clock_mhz);
        table_cell(table, STYLE_NONE, "%" PRId32 " GB/s", p->bandwidth_gbps);
        table_cell(table, STYLE_NONE, "%s", p->source);
    }
    table_print(table);
    puts("\n~ assumed, not measured on that GPU: carma calibrate measures yours");
    return CLI_OK;
}

int cmd_calibrate(struct cli *cli, int argc, char **argv)
{
    struct calibrate_command calibrate = {0};
    int status;

    words_begin(&calibrate.program, cli, argc, "carma-program", argv[0]);
    if (cli_parse(cli, argc, argv, &calibrate, &status))
        status = calibrate.list ? list_profiles() : words_run(&calibrate.program);
    words_release(&calibrate.program);
    return status;
}
