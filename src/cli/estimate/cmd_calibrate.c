/* carma calibrate: this machine's addition to the memory of a job's tensors, as a machine profile. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/units.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/estimate/calibrate.h"
#include "cli/show/table.h"
#include "cli/show/term.h"

#define STATUS_NO_GPU 69 /* EX_UNAVAILABLE of sysexits */
#define FILES_MAX     16

struct calibrate_options {
    const char *output;
    const char *files[FILES_MAX];
    size_t file_count;
    bool list;
};

enum { KEY_OUTPUT = 'o', KEY_FROM_DATA = 0x200, KEY_LIST };

static const struct argp_option options[] = {
    {"output", KEY_OUTPUT, "FILE", 0, "write the profile there (default: print it)", 0},
    {"from-data", KEY_FROM_DATA, "KIND:FILE", 0,
     "take it from measured runs instead: mlp, transformer and cnn; may be given several times", 0},
    {"list", KEY_LIST, NULL, 0, "list the built-in profiles", 0},
    {0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct calibrate_options *wanted = state->input;

    switch (key) {
    case KEY_OUTPUT:
        wanted->output = arg;
        return 0;
    case KEY_FROM_DATA:
        if (wanted->file_count == FILES_MAX)
            return cli_bad_usage(state, "--from-data: more than %d files: join them", FILES_MAX);
        wanted->files[wanted->file_count++] = arg;
        return 0;
    case KEY_LIST:
        wanted->list = true;
        return 0;
    case ARGP_KEY_END:
        if (wanted->list && (wanted->output || wanted->file_count))
            return cli_bad_usage(state, "--list goes alone");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
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
    CLEANUP(strbuf_release) struct strbuf out = {0};
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
    table_format(table, term_width(stdout), term_colour(stdout), &out);
    table_free(table);
    fputs(out.text, stdout);
    puts("\n~ assumed, not measured on that GPU: carma calibrate measures yours");
    return CLI_OK;
}

/* Called after its file, in the characters that a profile may have: "box 1.profile" is the profile box_1. */
static void name_profile(struct machine_profile *profile, const char *output)
{
    const char *base = output ? file_base_name(output) : "calibrated", *dot = strrchr(base, '.');

    snprintf(profile->name, sizeof profile->name, "%.*s", (int)(dot && dot > base ? dot - base : 63), base);
    for (char *c = profile->name; *c; c++)
        if (*c <= ' ' || *c > '~')
            *c = '_';
}

static int write_profile(const struct machine_profile *profile, const char *notes, const char *output)
{
    CLEANUP(strbuf_release) struct strbuf text = {0};
    char context[UNITS_TEXT], cudnn[UNITS_TEXT];
    struct error err;

    strbuf_puts(&text, "# Made by carma calibrate (docs/formats/profile.md).\n");
    strbuf_puts(&text, notes);
    machine_profile_format(profile, &text);
    if (!output) {
        fputs(text.text, stdout);
        return CLI_OK;
    }
    if (file_write_atomic(output, text.text, text.length, 0644, &err))
        return cli_fail("%s", err.text);
    printf("%s: context %s, with cuDNN %s more; written to %s\n", profile->gpu,
           format_bytes(profile->context_bytes, context), format_bytes(profile->cudnn_bytes, cudnn), output);
    return CLI_OK;
}

int cmd_calibrate(struct cli *cli, int argc, char **argv)
{
    struct calibrate_options wanted = {0};
    struct machine_profile profile;
    CLEANUP(strbuf_release) struct strbuf notes = {0};
    struct error err;
    int status, rc;

    if (!cli_parse(cli, argc, argv, &wanted, &status))
        return status;
    if (wanted.list)
        return list_profiles();
    rc = wanted.file_count ? calibrate_by_data(&profile, wanted.files, wanted.file_count, &notes, &err)
                           : calibrate_by_gpu(&profile, &notes, &err);
    if (rc) {
        cli_fail("%s", err.text);
        return !wanted.file_count && (rc == -ENOENT || rc == -ENODEV) ? STATUS_NO_GPU : CLI_FAILURE;
    }
    name_profile(&profile, wanted.output);
    return write_profile(&profile, notes.text ? notes.text : "", wanted.output);
}
