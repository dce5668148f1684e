/* carma bench collocate: the effect of sharing a GPU on training jobs, measured. */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/units.h"
#include "bench/bench.h"
#include "bench/collocate.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/programs/programs.h"
#include "cli/show/term.h"
#include "cli/show/answer.h"

#define MIXES_MAX      32
#define EPOCHS_MAX     1000000
#define DEFAULT_DEGREE 4

struct collocate_options {
    const char *commands;
    char **argv; /* the arguments after "--"; NULL: nothing */
    const char *gpu;
    const char *library;
    const char *mps_program;
    const char *pattern;
    const char *output;
    const char *mixes[MIXES_MAX];
    size_t mix_count;
    unsigned int modes;
    uint64_t degrees;
    int64_t epochs; /* 0: not said */
    int64_t time_limit_ns;
    bool json;
};

static error_t take_time_limit(struct collocate_options *wanted, const char *arg, struct argp_state *state)
{
    struct error err;

    if (parse_duration(arg, &wanted->time_limit_ns, &err) || wanted->time_limit_ns == 0)
        return cli_bad_usage(state, "--time-limit: '%.40s' is not a time above 0, such as 90s or 10m", arg);
    return 0;
}

static error_t check(const struct collocate_options *wanted, const struct argp_state *state)
{
    if (!wanted->commands && !wanted->argv)
        return cli_bad_usage(state, "what is to be run? put a command behind '--', or name a file of --commands");
    if (wanted->commands && wanted->argv)
        return cli_bad_usage(state, "a command, or a file of --commands, not both");
    if (wanted->mix_count && !wanted->commands)
        return cli_bad_usage(state, "--mix names commands of a file of --commands");
    if (wanted->epochs && wanted->pattern)
        return cli_bad_usage(state, "--epochs, or --epoch-pattern, not both");
    return 0;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct collocate_options *wanted = state->input;
    struct error err;

    switch (key) {
    case BENCH_KEY_MODE:
        return collocate_modes_parse(arg, &wanted->modes, &err) ? cli_bad_usage(state, "--mode: %s", err.text) : 0;
    case BENCH_KEY_DEGREES:
        return collocate_degrees_parse(arg, &wanted->degrees, &err) ? cli_bad_usage(state, "--degrees: %s", err.text)
                                                                    : 0;
    case BENCH_KEY_COMMANDS:
        wanted->commands = arg;
        return 0;
    case BENCH_KEY_MIX:
        if (wanted->mix_count == MIXES_MAX)
            return cli_bad_usage(state, "--mix: more than %d", MIXES_MAX);
        wanted->mixes[wanted->mix_count++] = arg;
        return 0;
    case BENCH_KEY_EPOCHS:
        return parse_integer(arg, 1, EPOCHS_MAX, &wanted->epochs, &err) ? cli_bad_usage(state, "--epochs: %s", err.text)
                                                                        : 0;
    case BENCH_KEY_EPOCH_PATTERN:
        wanted->pattern = arg;
        return 0;
    case BENCH_KEY_TIME_LIMIT:
        return take_time_limit(wanted, arg, state);
    case BENCH_KEY_GPU:
        wanted->gpu = arg;
        return 0;
    case BENCH_KEY_MPS_CONTROL:
        wanted->mps_program = arg;
        return 0;
    case BENCH_KEY_NVML:
        wanted->library = arg;
        return 0;
    case BENCH_KEY_OUTPUT:
        wanted->output = arg;
        return 0;
    case CLI_JSON_KEY:
        wanted->json = true;
        return 0;
    case ARGP_KEY_ARG:
        /* It and all that follows; "--" before it keeps its own options from being taken for ours. */
        wanted->argv = state->argv + state->next - 1;
        state->next = state->argc;
        return 0;
    case ARGP_KEY_END:
        return check(wanted, state);
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* ---- The GPU ---- */

static const struct gpu_reading *choose_gpu(const struct gpu_node_reading *node, const char *wanted)
{
    for (uint32_t i = 0; i < node->count; i++) {
        const struct gpu_reading *gpu = &node->gpus[i];
        char index[12];

        if (gpu->kind == GPU_INSTANCE || !*gpu->uuid)
            continue;
        snprintf(index, sizeof index, "%" PRIu32, gpu->index);
        if (!wanted || strcmp(wanted, index) == 0 || strcmp(wanted, gpu->uuid) == 0)
            return gpu;
    }
    return NULL;
}

/* The largest first. */
static void add_instance(struct collocate_setup *setup, const struct gpu_node_reading *node,
                         const struct gpu_reading *instance)
{
    size_t at = setup->instance_count;

    if (setup->instance_count == COLLOCATE_INSTANCES_MAX)
        return;
    while (at > 0) {
        const struct gpu_reading *before = collocate_watch_find(setup->watch, setup->instances[at - 1]);
        if (before->total_bytes >= instance->total_bytes)
            break;
        memcpy(setup->instances[at], setup->instances[at - 1], GPU_UUID_SIZE);
        at--;
    }
    memcpy(setup->instances[at], instance->uuid, GPU_UUID_SIZE);
    setup->instance_count++;
}

/* Instances of the chosen GPU, or, where it is a whole one, of another GPU of its kind. */
static void find_instances(struct collocate_setup *setup, const struct gpu_reading *chosen)
{
    const struct gpu_node_reading *node = setup->watch->latest;

    for (uint32_t i = 0; i < node->count && !*setup->parent; i++) {
        const struct gpu_reading *gpu = &node->gpus[i];
        bool fits = chosen->kind == GPU_PARTITIONED ? gpu == chosen : strcmp(gpu->name, chosen->name) == 0;
        if (gpu->kind == GPU_PARTITIONED && fits)
            memcpy(setup->parent, gpu->uuid, sizeof setup->parent);
    }
    for (uint32_t i = 0; i < node->count && *setup->parent; i++) {
        if (node->gpus[i].kind == GPU_INSTANCE && strcmp(node->gpus[i].parent, setup->parent) == 0)
            add_instance(setup, node, &node->gpus[i]);
    }
}

static int set_up_gpu(struct collocate_setup *setup, const char *wanted, struct error *err)
{
    const struct gpu_reading *gpu = choose_gpu(setup->watch->latest, wanted);

    if (!gpu && wanted)
        return error_set(err, ENODEV, "--gpu %.48s: there is no such GPU: nvidia-smi -L lists them", wanted);
    if (!gpu)
        return error_set(err, ENODEV, "there is no GPU here");
    memcpy(setup->gpu, gpu->uuid, sizeof setup->gpu);
    setup->partitioned = gpu->kind == GPU_PARTITIONED;
    find_instances(setup, gpu);
    if (gpu->process_count)
        cli_fail("%" PRIu32 " processes are on GPU %" PRIu32 " already: the figures will be theirs, too",
                 gpu->process_count, gpu->index);
    return 0;
}

/* ---- Programs and places ---- */

/* The first file of that name on the PATH that can be run; owned by the caller, NULL: none. */
static char *find_program(const char *name)
{
    const char *path = getenv("PATH");
    CLEANUP(free_ptr) char *copy = xstrdup(path ? path : "/usr/bin:/bin");
    char *rest = copy, *directory;

    while ((directory = strsep(&rest, ":"))) {
        char *file = xasprintf("%s/%s", *directory ? directory : ".", name);
        if (access(file, X_OK) == 0)
            return file;
        free(file);
    }
    return NULL;
}

static char *make_directory(const char *wanted, struct error *err)
{
    const char *temporary = getenv("TMPDIR");
    char *directory;

    if (wanted)
        return file_make_dirs(wanted, 0755, err) ? NULL : xstrdup(wanted);
    directory = xasprintf("%s/carma-collocate-XXXXXX", temporary && *temporary == '/' ? temporary : "/tmp");
    if (mkdtemp(directory))
        return directory;
    error_set(err, errno, "%s: %s", directory, strerror(errno));
    free(directory);
    return NULL;
}

/* ---- All runs ---- */

struct progress {
    const struct collocate_plan *plan;
    const struct collocate_setup *setup;
    size_t at;
    bool shown; /* stderr is a terminal */
};

static void show_progress(void *user, const struct collocate_run *run, int64_t elapsed_ns)
{
    const struct progress *progress = user;
    const struct gpu_reading *gpu = collocate_watch_find(progress->setup->watch, progress->setup->gpu);
    CLEANUP(strbuf_release) struct strbuf text = {0};
    char number[UNITS_TEXT];

    if (!progress->shown)
        return;
    strbuf_printf(&text, "%zu/%zu  %s, %s  %s", progress->at + 1, progress->plan->run_count, run->label,
                  run->alone ? "alone" : collocate_mode_name(run->mode), format_duration(elapsed_ns, number));
    if (gpu && gpu->metrics[GPU_SM_ACTIVITY].source != GPU_SOURCE_NONE)
        strbuf_printf(&text, "  SM %" PRId64 "%%", gpu->metrics[GPU_SM_ACTIVITY].value / 10);
    if (gpu && gpu->valid & GPU_HAS_MEMORY)
        strbuf_printf(&text, "  %s", format_bytes(gpu->used_bytes, number));
    if (gpu && gpu->valid & GPU_HAS_POWER)
        strbuf_printf(&text, "  %" PRId64 " W", gpu->power_mw / 1000);
    fprintf(stderr, TERM_LINE_CLEAR "%.*s", term_width(stderr) - 1, text.text);
    fflush(stderr);
    cli_progress_shown = true;
}

static int run_all(struct collocate_setup *setup, struct collocate_plan *plan, struct error *err)
{
    struct progress progress = {.plan = plan, .setup = setup, .shown = isatty(STDERR_FILENO)};
    int rc = 0;

    for (; rc == 0 && progress.at < plan->run_count; progress.at++)
        rc = collocate_run(setup, plan, &plan->runs[progress.at], show_progress, &progress, err);
    if (cli_progress_shown && rc == 0) {
        fputs(TERM_LINE_CLEAR, stderr);
        cli_progress_shown = false;
    }
    return rc;
}

static int write_report(const struct collocate_options *wanted, const json_t *report, struct error *err)
{
    if (!wanted->output)
        return 0;
    CLEANUP(free_ptr) char *path = xasprintf("%s/collocate.json", wanted->output);
    CLEANUP(free_ptr) char *text = json_dumps(report, JSON_INDENT(2));
    return file_write_atomic(path, text, strlen(text), 0644, err);
}

static int tell(const struct collocate_options *wanted, const struct collocate_setup *setup,
                const struct collocate_plan *plan)
{
    CLEANUP(json_release) json_t *report = collocate_report(plan, setup);
    CLEANUP(strbuf_release) struct strbuf out = {0};
    size_t failed = 0;
    struct error err;

    if (wanted->json) {
        cli_print_json(report);
    } else {
        collocate_table(plan, term_width(stdout), term_colour(stdout), &out);
        fputs(out.text, stdout);
    }
    if (write_report(wanted, report, &err))
        return cli_fail("%s", err.text);
    for (size_t i = 0; i < plan->run_count; i++)
        failed += plan->runs[i].result == COLLOCATE_FAILED;
    if (failed)
        return cli_fail("%zu of %zu runs failed: their output is in %s", failed, plan->run_count, setup->directory);
    return CLI_OK;
}

/* ---- Signals ---- */

static void on_signal(uv_signal_t *signal, int number)
{
    struct collocate_setup *setup = signal->data;

    setup->interrupted = number;
}

static const int stop_signals[] = {SIGINT, SIGTERM, SIGHUP};

static void catch_signals(uv_loop_t *loop, uv_signal_t *signals, struct collocate_setup *setup)
{
    for (size_t i = 0; i < array_size(stop_signals); i++) {
        struct sigaction old;
        uv_signal_init(loop, &signals[i]);
        signals[i].data = setup;
        /* Ignored signals stay ignored: nohup, a shell's background. */
        if (sigaction(stop_signals[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
            uv_signal_start(&signals[i], on_signal, stop_signals[i]);
        uv_unref((uv_handle_t *)&signals[i]);
    }
}

/* ---- The command ---- */

static int measure(const struct collocate_options *wanted, struct collocate_plan *plan, const regex_t *pattern,
                   const char *directory, bool *keep)
{
    CLEANUP(free_ptr)
    char *mps_program = wanted->mps_program ? realpath(wanted->mps_program, NULL) : find_program(BENCH_MPS_PROGRAM);
    struct collocate_watch watch;
    struct collocate_setup setup = {
        .watch = &watch,
        .mps_program = mps_program,
        .directory = directory,
        .epoch_pattern = pattern,
        .epochs = wanted->epochs ? (uint32_t)wanted->epochs : 1,
        .time_limit_ns = wanted->time_limit_ns,
    };
    uv_signal_t signals[array_size(stop_signals)];
    uv_loop_t loop;
    struct error err;
    int rc, status;

    if (wanted->mps_program && !mps_program)
        return cli_fail("--mps-control %s: %s", wanted->mps_program, strerror(errno));
    uv_loop_init(&loop);
    catch_signals(&loop, signals, &setup);
    rc = collocate_watch_open(&watch, &loop, wanted->library, &err);
    if (rc == 0)
        rc = set_up_gpu(&setup, wanted->gpu, &err);
    if (rc == 0)
        rc = run_all(&setup, plan, &err);
    status = rc == 0 ? tell(wanted, &setup, plan) : cli_fail("%s", err.text);
    if (rc == -EINTR)
        status = 128 + setup.interrupted;
    *keep = rc == 0 && status != CLI_OK;
    collocate_watch_close(&watch);
    for (size_t i = 0; i < array_size(stop_signals); i++)
        uv_close((uv_handle_t *)&signals[i], NULL);
    uv_run(&loop, UV_RUN_DEFAULT);
    uv_loop_close(&loop);
    return status;
}

static int measure_in_directory(const struct collocate_options *wanted, struct collocate_plan *plan,
                                const regex_t *pattern)
{
    struct error err;
    CLEANUP(free_ptr) char *directory = make_directory(wanted->output, &err);
    bool keep = false;
    int status;

    if (!directory)
        return cli_fail("%s", err.text);
    status = measure(wanted, plan, pattern, directory, &keep);
    if (!wanted->output && !keep)
        file_remove_tree(directory);
    return status;
}

static int make_plan(const struct collocate_options *wanted, struct collocate_plan *plan, struct error *err)
{
    unsigned int modes = wanted->modes ? wanted->modes : (1u << COLLOCATE_MODES) - 1;
    uint64_t degrees = wanted->degrees;
    int rc = 0;

    if (!degrees && !wanted->mix_count)
        degrees = (UINT64_C(2) << DEFAULT_DEGREE) - 2;
    if (wanted->commands)
        rc = collocate_plan_read(plan, wanted->commands, err);
    else
        collocate_plan_command(plan, wanted->argv);
    return rc ? rc : collocate_plan_runs(plan, modes, degrees, wanted->mixes, wanted->mix_count, err);
}

int cmd_bench_collocate(struct cli *cli, int argc, char **argv)
{
    struct argp argp = bench_collocate_argp;
    struct collocate_options wanted = {0};
    struct collocate_plan plan = {0};
    struct error err;
    regex_t pattern;
    int status;

    argp.parser = parse;
    cli->argp = &argp;
    if (!cli_parse(cli, argc, argv, &wanted, &status))
        return status;
    if (wanted.pattern && regcomp(&pattern, wanted.pattern, REG_EXTENDED | REG_NOSUB))
        return cli_fail("--epoch-pattern '%.80s' is not a regular expression", wanted.pattern);
    if (make_plan(&wanted, &plan, &err))
        status = cli_fail("%s", err.text);
    else
        status = measure_in_directory(&wanted, &plan, wanted.pattern ? &pattern : NULL);
    if (wanted.pattern)
        regfree(&pattern);
    collocate_plan_release(&plan);
    return status;
}
