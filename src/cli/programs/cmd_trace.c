/* carma trace build and show: carma-program carries them out, and gets the trace on its standard input, read as for
 * carma simulate. */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/install.h"
#include "base/memory.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/programs/programs.h"
#include "cli/show/answer.h"
#include "cli/show/term.h"
#include "trace/csv.h"
#include "trace/trace.h"
#include "trace/workloads.h"

const struct argp trace_argp = {
    .parser = cli_parse_group,
    .args_doc = "build|show FILE",
    .doc = "Work on traces of training jobs: 'carma trace build' makes one for a server from a published one. 'carma "
           "trace show' shows the demand of one."
           "\v'carma help trace build' and 'carma help trace show' explain them. Which files are understood: "
           "docs/formats/trace.md.",
};

#define GPUS_MAX 1000000
#define SEED_MAX INT64_C(1000000000)

enum {
    KEY_WORKLOADS = 0x200,
    KEY_VC,
    KEY_FROM,
    KEY_TO,
    KEY_WINDOW,
    KEY_MAX_GPUS,
    KEY_MIX,
    KEY_KEEP,
    KEY_MIN_DURATION,
    KEY_MAX_DURATION,
    KEY_STRETCH,
    KEY_LOAD,
    KEY_GPUS,
    KEY_SEED,
    KEY_BIN,
    KEY_PLOT
};

static const struct program_range ranges[] = {
    {'n', 1, CSV_MAX_ROWS}, {KEY_MAX_GPUS, 1, TRACE_MAX_GPUS}, {KEY_GPUS, 1, GPUS_MAX}, {KEY_SEED, 0, SEED_MAX}, {0},
};

static const struct argp_option build_options[] = {
    {NULL, 0, NULL, 0, "Which jobs:", 1},
    {"vc", KEY_VC, "ID", 0, "those of one virtual cluster (default: all of the file)", 1},
    {"from", KEY_FROM, "TIME", 0, "that arrive from then on, in the file's time, e.g. 90s, 12h, 30d", 1},
    {"to", KEY_TO, "TIME", 0, "that arrive before then", 1},
    {"window", KEY_WINDOW, "TIME", 0, "that arrive within so long after --from (default: after the first arrival)", 1},
    {"max-gpus", KEY_MAX_GPUS, "N", 0, "that take at most N GPUs", 1},
    {"jobs", 'n', "N", 0, "N of those, drawn evenly (default: all)", 1},
    {NULL, 0, NULL, 0, "What they are:", 2},
    {"mix", KEY_MIX, "L/M/H", 0,
     "draw workloads, light, medium and heavy ones in these shares (default: 65/27/8 where the file names no "
     "workloads; "
     "else its own are kept)",
     2},
    {"keep", KEY_KEEP, "WHAT", 0,
     "keep the file's 'gpus', 'durations' or 'gpus,durations' instead of taking those of the workloads drawn", 2},
    {"min-duration", KEY_MIN_DURATION, "TIME", 0, "raise durations kept to this", 2},
    {"max-duration", KEY_MAX_DURATION, "TIME", 0, "cut durations kept to this", 2},
    {"workloads", KEY_WORKLOADS, "FILE", 0, "the workloads (default: the installed ones)", 2},
    {NULL, 0, NULL, 0, "When they arrive:", 3},
    {"stretch", KEY_STRETCH, "F", 0, "times between arrivals are F times as long", 3},
    {"load", KEY_LOAD, "F", 0, "stretch so that the arriving jobs keep the GPUs of --gpus busy F of the time, e.g. 0.9",
     3},
    {"gpus", KEY_GPUS, "N", 0, "GPUs that --load means (default 4)", 3},
    {"seed", KEY_SEED, "N", 0, "of the random choices (default 1): the same seed gives the same trace", 4},
    {"output", 'o', "FILE", 0, "write there (default: standard output)", 4},
    {0},
};

const struct argp trace_build_argp = {
    .options = build_options,
    .args_doc = "FILE",
    .doc =
        "Make a trace for a server from a published one: cut a window out, take N of its jobs, draw workloads by a "
        "mix, scale the arrivals. The result is in carma's format and says in its comments how it was made."
        "\vFILE is in one of the formats of docs/formats/trace.md, gzip-packed or not. Which workload is light, medium "
        "or heavy: docs/formats/workloads.md.",
};

static const struct argp_option show_options[] = {
    {"vc", KEY_VC, "ID", 0, "only the jobs of one virtual cluster", 0},
    {"bin", KEY_BIN, "TIME", 0, "length of the time bins, e.g. 10m, 6h, 1d (default: at most 24 of them)", 0},
    {"plot", KEY_PLOT, "FILE.svg", 0, "also draw it there (needs python3-matplotlib)", 0},
    {"workloads", KEY_WORKLOADS, "FILE", 0, "the workloads that the trace names (default: the installed ones)", 0},
    {"json", CLI_JSON_KEY, NULL, 0, "print JSON (docs/formats/cli.md)", 0},
    {0},
};

const struct argp trace_show_argp = {
    .options = show_options,
    .args_doc = "FILE",
    .doc = "Show the demand of a trace: when its jobs arrive, how long they run, and how many GPUs they take. Also how "
           "many GPUs would be busy if no job ever waited."
           "\vFILE is in one of the formats of docs/formats/trace.md, gzip-packed or not.",
};

struct trace_command {
    struct program_words program;
    const char *path, *vc, *workloads;
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct trace_command *command = state->input;

    switch (key) {
    case KEY_VC:
        command->vc = arg;
        return 0;
    case KEY_WORKLOADS:
        command->workloads = arg;
        return 0;
    case ARGP_KEY_ARG:
        if (command->path)
            return cli_bad_usage(state, "one trace at a time: '%.40s' is too much", arg);
        command->path = arg;
        return 0;
    case ARGP_KEY_END:
        return command->path ? 0 : cli_bad_usage(state, "which trace? name its file");
    default:
        return words_pass(&command->program, key, arg, state);
    }
}

static json_t *workloads_json(const struct workloads *workloads)
{
    json_t *list = json_array();

    for (size_t i = 0; i < workloads->count; i++) {
        const struct workload *workload = &workloads->items[i];
        json_array_append_new(list, json_pack("[s, i, s, I]", workload->id, (int)workload->gpus,
                                              workload_class_name(workload_class(workload)),
                                              (json_int_t)workload->solo_runtime_ns));
    }
    return list;
}

/* The first line: names, fit to be shown on this terminal, and what the jobs may name. */
static json_t *header_json(const struct trace_command *command, const struct trace *trace,
                           const struct workloads *workloads)
{
    CLEANUP(free_ptr) char *path = term_escape(command->path), *vc = command->vc ? term_escape(command->vc) : NULL;
    CLEANUP(free_ptr) char *workloads_path = term_escape(command->workloads ? command->workloads : "workloads.csv");

    return json_pack("{s:s, s:s?, s:s, s:s, s:I, s:o, s:i, s:b, s:b}", "path", path, "vc", vc, "workloads_path",
                     workloads_path, "format", trace_format_name(trace->format), "left_out",
                     (json_int_t)trace->left_out, "workloads", workloads_json(workloads), "columns", term_width(stdout),
                     "colour", term_colour(stdout), "utf8", term_utf8());
}

/* The lines behind it: each job's arrival and run time (-1: its workload's), GPUs, thousandths of them, and its
 * workload's place in the header's list (-1: it has none). */
static void write_jobs(const struct trace *trace, const struct workloads *workloads, FILE *out)
{
    for (size_t i = 0; i < trace->count; i++) {
        const struct trace_job *job = &trace->items[i];
        fprintf(out, "%" PRId64 " %" PRId64 " %" PRIu32 " %" PRId32 " %td\n", job->arrival_ns, job->duration_ns,
                job->gpus, job->gpu_permille, job->workload ? job->workload - workloads->items : -1);
    }
}

/* Makes it the standard input. */
static int hand_over(const struct trace_command *command, const struct trace *trace, const struct workloads *workloads)
{
    CLEANUP(json_release) json_t *header = header_json(command, trace, workloads);
    int fd = memfd_create("carma-program", MFD_CLOEXEC);
    FILE *out = fd < 0 ? NULL : fdopen(fd, "w");
    bool done = out && json_dumpf(header, out, JSON_COMPACT) == 0 && fputc('\n', out) != EOF;

    if (done)
        write_jobs(trace, workloads, out);
    done = done && fflush(out) == 0 && !ferror(out) && lseek(fd, 0, SEEK_SET) == 0 && dup2(fd, STDIN_FILENO) >= 0;
    if (!done)
        cli_fail("no memory to hand the trace over: %s", strerror(errno));
    if (out)
        fclose(out);
    return done ? 0 : -1;
}

int cmd_trace(struct cli *cli, int argc, char **argv)
{
    CLEANUP(free_ptr) char *installed = install_path("share/carma/workloads.csv");
    struct trace_command command = {0};
    struct workloads workloads = {0};
    struct trace trace = {0};
    struct argp argp = *cli->argp;
    struct error err;
    int status;

    words_begin(&command.program, cli, argc, "carma-program", argv[0]);
    command.program.ranges = ranges;
    argp.parser = parse;
    cli->argp = &argp;
    if (cli_parse(cli, argc, argv, &command, &status)) {
        struct trace_load_options load = {
            .workloads = &workloads, .vc = command.vc, .run_times = strcmp(argv[0], "trace show") == 0};
        if (workloads_read(&workloads, command.workloads ? command.workloads : installed, &err) ||
            trace_load(&trace, command.path, &load, &err))
            status = cli_fail("%s", err.text);
        else
            status = hand_over(&command, &trace, &workloads) ? CLI_FAILURE : words_run(&command.program);
    }
    trace_release(&trace);
    workloads_release(&workloads);
    words_release(&command.program);
    return status;
}
