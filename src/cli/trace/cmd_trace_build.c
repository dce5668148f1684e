/* carma trace build: the thesis's trace analyser and mapper. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/install.h"
#include "base/memory.h"
#include "base/strbuf.h"
#include "base/units.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/show/term.h"
#include "trace/build.h"
#include "trace/csv.h"
#include "trace/trace.h"
#include "trace/workloads.h"

struct build_options {
    const char *source;
    const char *workloads;
    const char *output;
    const char *vc;
    int64_t from_ns, to_ns, window_ns; /* -1: not said */
    bool mixed;                        /* --mix was said */
    struct trace_build plan;
};

#define STRETCH_MAX 1e6
#define LOAD_MAX    100.0
#define SHARE_MAX   1000000
#define SEED_MAX    INT64_C(1000000000)
#define THESIS_GPUS 4 /* of its server */
#define THESIS_MIX  "65/27/8"

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
    KEY_SEED
};

static const struct argp_option options[] = {
    {NULL, 0, NULL, 0, "Which jobs:", 1},
    {"vc", KEY_VC, "ID", 0, "those of one virtual cluster (default: all of the file)", 1},
    {"from", KEY_FROM, "TIME", 0, "that arrive from then on, in the file's time, e.g. 90s, 12h, 30d", 1},
    {"to", KEY_TO, "TIME", 0, "that arrive before then", 1},
    {"window", KEY_WINDOW, "TIME", 0, "that arrive within so long after --from (default: after the first arrival)", 1},
    {"max-gpus", KEY_MAX_GPUS, "N", 0, "that take at most N GPUs", 1},
    {"jobs", 'n', "N", 0, "N of those, drawn evenly (default: all)", 1},
    {NULL, 0, NULL, 0, "What they are:", 2},
    {"mix", KEY_MIX, "L/M/H", 0,
     "draw workloads, light, medium and heavy ones in these shares (default: " THESIS_MIX
     " where the file names no workloads; else its own are kept)",
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

static error_t take_time(int64_t *ns, const char *name, const char *arg, struct argp_state *state)
{
    struct error err;

    return parse_duration(arg, ns, &err) ? cli_bad_usage(state, "%s: %s", name, err.text) : 0;
}

static error_t take_integer(int64_t *value, const char *name, int64_t low, int64_t high, const char *arg,
                            struct argp_state *state)
{
    struct error err;

    return parse_integer(arg, low, high, value, &err) ? cli_bad_usage(state, "%s: %s", name, err.text) : 0;
}

static error_t take_factor(double *value, const char *name, double high, const char *arg, struct argp_state *state)
{
    char *end;

    *value = strtod(arg, &end);
    if (end == arg || *end || !(*value > 0 && *value <= high))
        return cli_bad_usage(state, "%s '%.40s' is not a number above 0 and up to %g", name, arg, high);
    return 0;
}

/* Three shares, "65/27/8". */
static int parse_mix(const char *text, uint32_t mix[static WORKLOAD_CLASS_COUNT])
{
    uint64_t sum = 0;

    for (size_t c = 0; c < WORKLOAD_CLASS_COUNT; c++) {
        size_t digits = strspn(text, "0123456789");

        if (digits == 0 || digits > 7 || text[digits] != (c + 1 < WORKLOAD_CLASS_COUNT ? '/' : '\0'))
            return -1;
        mix[c] = (uint32_t)strtoul(text, NULL, 10);
        if (mix[c] > SHARE_MAX)
            return -1;
        sum += mix[c];
        text += digits + 1;
    }
    return sum > 0 ? 0 : -1;
}

static error_t take_mix(struct build_options *build, const char *arg, struct argp_state *state)
{
    build->mixed = true;
    if (parse_mix(arg, build->plan.mix))
        return cli_bad_usage(state, "mix '%.40s' is not three shares such as " THESIS_MIX, arg);
    return 0;
}

static error_t take_keep(struct trace_build *plan, const char *arg, struct argp_state *state)
{
    CLEANUP(free_ptr) char *words = xstrdup(arg);
    char *rest = words, *word;

    while ((word = strsep(&rest, ","))) {
        if (strcmp(word, "gpus") == 0)
            plan->keep_gpus = true;
        else if (strcmp(word, "durations") == 0)
            plan->keep_durations = true;
        else
            return cli_bad_usage(state, "keep '%.40s' is not gpus, durations, or both with a comma", word);
    }
    return 0;
}

static error_t take_number(struct trace_build *plan, int key, const char *arg, struct argp_state *state)
{
    int64_t value = 0;
    error_t rc;

    switch (key) {
    case 'n':
        rc = take_integer(&value, "jobs", 1, CSV_MAX_ROWS, arg, state);
        plan->jobs = (size_t)value;
        return rc;
    case KEY_MAX_GPUS:
        rc = take_integer(&value, "max-gpus", 1, TRACE_MAX_GPUS, arg, state);
        plan->max_gpus = (uint32_t)value;
        return rc;
    case KEY_GPUS:
        rc = take_integer(&value, "gpus", 1, 1000000, arg, state);
        plan->load_gpus = (uint32_t)value;
        return rc;
    default:
        rc = take_integer(&value, "seed", 0, SEED_MAX, arg, state);
        plan->seed = (uint64_t)value;
        return rc;
    }
}

static error_t check(const struct build_options *build, struct argp_state *state)
{
    const struct trace_build *plan = &build->plan;

    if (!build->source)
        return cli_bad_usage(state, "which trace? name its file");
    if (build->to_ns >= 0 && build->window_ns >= 0)
        return cli_bad_usage(state, "--to or --window, not both");
    if (build->to_ns >= 0 && build->to_ns <= build->from_ns)
        return cli_bad_usage(state, "--to is not after --from");
    if (plan->stretch > 0 && plan->load > 0)
        return cli_bad_usage(state, "--stretch or --load, not both");
    if ((plan->min_duration_ns || plan->max_duration_ns) && !plan->keep_durations)
        return cli_bad_usage(state, "--min-duration and --max-duration are for --keep durations");
    if (plan->max_duration_ns && plan->max_duration_ns < plan->min_duration_ns)
        return cli_bad_usage(state, "--max-duration is shorter than --min-duration");
    return 0;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct build_options *build = state->input;
    struct trace_build *plan = &build->plan;

    switch (key) {
    case KEY_VC:
        build->vc = arg;
        return 0;
    case KEY_WORKLOADS:
        build->workloads = arg;
        return 0;
    case 'o':
        build->output = arg;
        return 0;
    case KEY_FROM:
        return take_time(&build->from_ns, "from", arg, state);
    case KEY_TO:
        return take_time(&build->to_ns, "to", arg, state);
    case KEY_WINDOW:
        return take_time(&build->window_ns, "window", arg, state);
    case KEY_MIN_DURATION:
        return take_time(&plan->min_duration_ns, "min-duration", arg, state);
    case KEY_MAX_DURATION:
        return take_time(&plan->max_duration_ns, "max-duration", arg, state);
    case KEY_STRETCH:
        return take_factor(&plan->stretch, "stretch", STRETCH_MAX, arg, state);
    case KEY_LOAD:
        return take_factor(&plan->load, "load", LOAD_MAX, arg, state);
    case KEY_MIX:
        return take_mix(build, arg, state);
    case KEY_KEEP:
        return take_keep(plan, arg, state);
    case 'n':
    case KEY_MAX_GPUS:
    case KEY_GPUS:
    case KEY_SEED:
        return take_number(plan, key, arg, state);
    case ARGP_KEY_ARG:
        if (build->source)
            return cli_bad_usage(state, "one trace at a time: '%.40s' is too much", arg);
        build->source = arg;
        return 0;
    case ARGP_KEY_END:
        return check(build, state);
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

const struct argp trace_build_argp = {
    .options = options,
    .parser = parse,
    .args_doc = "FILE",
    .doc =
        "Make a trace for a server from a published one: cut a window out, take N of its jobs, draw workloads by a "
        "mix, scale the arrivals. The result is in carma's format and says in its comments how it was made."
        "\vFILE is in one of the formats of docs/formats/trace.md, gzip-packed or not. Which workload is light, medium "
        "or heavy: docs/formats/workloads.md.",
};

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

static double seconds(int64_t ns)
{
    return (double)ns / 1e9;
}

static void describe_jobs(const struct build_options *build, const struct trace *source, const struct trace *built,
                          const struct trace_build_report *report, struct strbuf *out)
{
    CLEANUP(free_ptr) char *name = term_escape(base_name(build->source));
    CLEANUP(free_ptr) char *vc = build->vc ? term_escape(build->vc) : NULL;
    const struct trace_build *plan = &build->plan;

    strbuf_printf(out, "# Made by carma trace build from %s (%s)%s%s: %zu jobs.\n", name,
                  trace_format_name(source->format), vc ? ", virtual cluster " : "", vc ? vc : "", built->count);
    strbuf_printf(out, "# Window: from %.12g s", seconds(plan->from_ns));
    if (plan->to_ns >= 0)
        strbuf_printf(out, " to %.12g s", seconds(plan->to_ns));
    strbuf_printf(out, "; jobs that arrive in it: %zu", report->in_window);
    if (plan->max_gpus)
        strbuf_printf(out, ", left out for more than %" PRIu32 " GPUs: %zu", plan->max_gpus, report->too_large);
    strbuf_puts(out, ".\n");
}

static void describe_mapping(const struct build_options *build, const struct trace_build_report *report,
                             struct strbuf *out)
{
    CLEANUP(free_ptr) char *workloads = term_escape(build->workloads ? base_name(build->workloads) : "workloads.csv");
    const struct trace_build *plan = &build->plan;
    const uint32_t *mix = plan->mix;
    const size_t *jobs = report->class_jobs;

    if (!plan->draw) {
        strbuf_puts(out, "# Workloads, GPUs and run times: as in that file.\n");
    } else {
        strbuf_printf(out, "# Workloads: drawn from %s, light/medium/heavy %" PRIu32 "/%" PRIu32 "/%" PRIu32, workloads,
                      mix[WORKLOAD_LIGHT], mix[WORKLOAD_MEDIUM], mix[WORKLOAD_HEAVY]);
        strbuf_printf(out, ".\n# GPUs: %s; run times: %s", plan->keep_gpus ? "as in that file" : "theirs",
                      plan->keep_durations ? "as in that file" : "theirs");
        if (plan->min_duration_ns)
            strbuf_printf(out, ", at least %.12g s", seconds(plan->min_duration_ns));
        if (plan->max_duration_ns)
            strbuf_printf(out, ", at most %.12g s", seconds(plan->max_duration_ns));
        strbuf_puts(out, ".\n");
    }
    strbuf_printf(out, "# Jobs that are light, medium, heavy: %zu, %zu, %zu.\n", jobs[WORKLOAD_LIGHT],
                  jobs[WORKLOAD_MEDIUM], jobs[WORKLOAD_HEAVY]);
    strbuf_printf(out, "# Times between arrivals: x %.6g", report->stretch);
    if (plan->load > 0)
        strbuf_printf(out, ", a load of %g on %" PRIu32 " GPUs", plan->load, plan->load_gpus);
    strbuf_printf(out, ". Seed: %" PRIu64 ".\n", plan->seed);
}

static int write_out(const struct build_options *build, const struct trace *built,
                     const struct trace_build_report *report, const struct strbuf *text)
{
    char span[UNITS_TEXT];
    struct error err;

    if (!build->output) {
        fwrite(text->text, 1, text->length, stdout);
        return CLI_OK;
    }
    if (file_write_atomic(build->output, text->text, text->length, 0644, &err))
        return cli_fail("%s", err.text);
    CLEANUP(free_ptr) char *name = term_escape(build->output);
    printf("%s: %zu jobs over %s; light %zu, medium %zu, heavy %zu\n", name, built->count,
           format_duration(built->items[built->count - 1].arrival_ns, span), report->class_jobs[WORKLOAD_LIGHT],
           report->class_jobs[WORKLOAD_MEDIUM], report->class_jobs[WORKLOAD_HEAVY]);
    return CLI_OK;
}

/* Options that were not given are set to the source's needs. */
static void complete_plan(struct build_options *build, const struct trace *source, const struct workloads *workloads)
{
    struct trace_build *plan = &build->plan;

    plan->workloads = workloads;
    plan->draw = build->mixed || !source->items[0].workload;
    if (!build->mixed)
        parse_mix(THESIS_MIX, plan->mix);
    plan->from_ns = build->from_ns >= 0 ? build->from_ns : source->items[0].arrival_ns;
    plan->to_ns = build->window_ns >= 0 ? plan->from_ns + build->window_ns : build->to_ns;
    if (plan->stretch <= 0)
        plan->stretch = 1;
}

static int build_trace(struct build_options *build, const struct trace *source, const struct workloads *workloads)
{
    CLEANUP(strbuf_release) struct strbuf text = {0};
    struct trace_build_report report;
    struct trace built;
    struct error err;
    int status;

    complete_plan(build, source, workloads);
    if (trace_build(&built, source, &build->plan, &report, &err))
        return cli_fail("%s: %s", build->source, err.text);
    describe_jobs(build, source, &built, &report, &text);
    describe_mapping(build, &report, &text);
    trace_write(&built, &text);
    status = write_out(build, &built, &report, &text);
    trace_release(&built);
    return status;
}

int cmd_trace_build(struct cli *cli, int argc, char **argv)
{
    struct build_options build = {
        .from_ns = -1, .to_ns = -1, .window_ns = -1, .plan = {.seed = 1, .load_gpus = THESIS_GPUS}};
    CLEANUP(free_ptr) char *installed = install_path("share/carma/workloads.csv");
    struct workloads workloads = {0};
    struct trace source = {0};
    struct error err;
    int status;

    if (!cli_parse(cli, argc, argv, &build, &status))
        return status;
    struct trace_load_options load = {.workloads = &workloads, .vc = build.vc};
    if (workloads_read(&workloads, build.workloads ? build.workloads : installed, &err) ||
        trace_load(&source, build.source, &load, &err))
        status = cli_fail("%s", err.text);
    else
        status = build_trace(&build, &source, &workloads);
    trace_release(&source);
    workloads_release(&workloads);
    return status;
}
