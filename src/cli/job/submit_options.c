/* The options of `carma submit`, on its command line and in the #CARMA lines of a script. */
#include <stdlib.h>

#include "api/job_signal.h"
#include "base/memory.h"
#include "base/share.h"
#include "base/units.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/job/submit.h"
#include "core/record.h"
#include "estimate/program/lower.h"

#define FILES_MAX 10000

const struct submit_options submit_options_none = {
    .gpu_memory_bytes = -1, .max_slowdown_permille = -1, .mps_threads_percent = -1, .mps_memory_limit_bytes = -1,
    .cpus = -1, .host_memory_bytes = -1, .time_limit_ns = -1, .signal_before_ns = -1, .batch_size = -1};

enum {
    KEY_GPU_MEMORY = 0x200,
    KEY_MAX_SLOWDOWN,
    KEY_EXCLUSIVE,
    KEY_MPS_THREADS,
    KEY_MPS_MEMORY_LIMIT,
    KEY_CPUS,
    KEY_HOST_MEMORY,
    KEY_SHARE,
    KEY_SIGNAL,
    KEY_REQUEUE,
    KEY_CONDA,
    KEY_SUMMARY,
    KEY_CAPTURE,
    KEY_BATCH_SIZE,
    KEY_OPTIMIZER,
    KEY_PRECISION,
    KEY_PARSABLE,
    KEY_NO_RETRY
};

static const struct argp_option options[] = {
    {"job-name", 'J', "NAME", 0, "what the queue calls it (default: the file's or the program's name)", 1},
    {"gpus", 'G', "N", 0, "how many GPUs it needs at once (default 1)", 1},
    {"gpu-memory", KEY_GPU_MEMORY, "SIZE", 0, "memory it needs on each of them, e.g. 12G (default: estimated)", 1},
    {"max-slowdown", KEY_MAX_SLOWDOWN, "FACTOR", 0,
     "how much slower than alone it may be predicted to run, e.g. 1.5 (default: as configured)", 1},
    {"exclusive", KEY_EXCLUSIVE, NULL, 0, "alone on its GPUs until it ends", 1},
    {"mps-threads", KEY_MPS_THREADS, "PERCENT", 0, "under MPS: most of a GPU's threads that it may use at a time", 1},
    {"mps-memory-limit", KEY_MPS_MEMORY_LIMIT, "SIZE", 0,
     "under MPS: GPU memory beyond which the driver gives it no more (default: any)", 1},
    {"cpus", KEY_CPUS, "N", 0, "most processors' worth of time for all its processes (default: any)", 1},
    {"memory", KEY_HOST_MEMORY, "SIZE", 0,
     "most memory of the host (RAM, not a GPU's: --gpu-memory) for all its processes, e.g. 64G (default: as configured)", 1},
    {"share", KEY_SHARE, "WAY", 0, "share GPUs only by streams or only by mps (default: as they are configured)", 1},
    {"time", 't', "LIMIT", 0, "end it after so long, e.g. 90 (minutes), 12:00:00, 2-12 (days-hours) (default: never)", 1},
    {"signal", KEY_SIGNAL, "SIG[@SECONDS]", 0, "send it this so long before its time limit, e.g. USR1@120 (default: 60)", 1},
    {"requeue", KEY_REQUEUE, NULL, 0, "start it again after its time limit, or when it was lost with the machine", 1},
    {"hold", 'H', NULL, 0, "do not start it before carma release", 1},
    {"chdir", 'D', "DIR", 0, "directory to run in (default: this one)", 2},
    {"output", 'o', "FILE", 0, "its standard output; %j is the job's id (default: carma-%j.out)", 2},
    {"error", 'e', "FILE", 0, "its standard error (default: into the output)", 2},
    {"conda", KEY_CONDA, "ENV", 0, "activate this conda environment first", 2},
    {"summary", KEY_SUMMARY, "FILE", 0, "the model's printed summary, to estimate its memory from", 3},
    {"model-summary", KEY_SUMMARY, NULL, OPTION_ALIAS | OPTION_HIDDEN, NULL, 3}, /* its name in earlier versions */
    {"capture", KEY_CAPTURE, "FILE", 0, "what carma.capture recorded of a training step: goes before a summary", 3},
    {"batch-size", KEY_BATCH_SIZE, "N", 0, "its batch size on each GPU (default: the summary's or capture's own)", 3},
    {"optimizer", KEY_OPTIMIZER, "NAME", 0, "sgd, momentum, adam, adamw or adafactor (default: as captured; adam)", 3},
    {"precision", KEY_PRECISION, "NAME", 0, "fp32, tf32 or amp (default: as captured; fp32)", 3},
    {"wait", 'W', NULL, 0, "wait until it has ended, and exit as it did", 4},
    {"no-retry", KEY_NO_RETRY, NULL, 0, "fail at once where no daemon answers (default: try again for 30 s)", 4},
    {"parsable", KEY_PARSABLE, NULL, 0, "print the job's id and nothing else", 4},
    {"json", CLI_JSON_KEY, NULL, 0, "print JSON as the daemon gives it", 4},
    {0},
};

static error_t take_number(const char *what, const char *arg, int64_t high, int64_t *value, struct argp_state *state)
{
    struct error err;

    return parse_integer(arg, 1, high, value, &err) ? cli_bad_usage(state, "%s: %s", what, err.text) : 0;
}

static error_t take_memory(const char *what, const char *arg, int64_t *bytes, struct argp_state *state)
{
    struct error err;

    if (parse_size(arg, bytes, &err))
        return cli_bad_usage(state, "%s: %s", what, err.text);
    if (*bytes < 1 || *bytes > SPEC_MAX_GPU_MEMORY)
        return cli_bad_usage(state, "%s: %.40s is out of range: more than 0, at most 1024T", what, arg);
    return 0;
}

static error_t take_host_memory(const char *arg, int64_t *bytes, struct argp_state *state)
{
    error_t code = take_memory("--memory", arg, bytes, state);

    if (code == 0 && *bytes < HOST_MEMORY_LEAST)
        return cli_bad_usage(state, "--memory: %.40s of the host's memory is too little: at least 16M (a GPU's: --gpu-memory)", arg);
    return code;
}

static error_t take_share(const char *arg, struct argp_state *state)
{
    enum share_mode way = share_mode_find(arg);

    if (way != SHARE_STREAMS && way != SHARE_MPS)
        return cli_bad_usage(state, "--share '%.40s' is none of streams and mps (alone on its GPUs: --exclusive)", arg);
    return 0;
}

/* Before "--" come files; behind it the whole rest is a command. */
static error_t take_argument(struct submit_command *submit, struct argp_state *state)
{
    char **at = state->argv + state->next - 1;

    if (state->quoted && state->next - 1 >= state->quoted) {
        submit->command = at;
        submit->command_count = (size_t)(state->argc - state->next + 1);
        state->next = state->argc;
        return 0;
    }
    if (submit->file_count >= FILES_MAX)
        return cli_bad_usage(state, "more than %d files: submit fewer at a time", FILES_MAX);
    if (!submit->files)
        submit->files = xcalloc((size_t)state->argc, sizeof *submit->files);
    submit->files[submit->file_count++] = *at;
    return 0;
}

static error_t check_usage(const struct submit_command *submit, struct argp_state *state)
{
    if (submit->command_count && submit->file_count > 1)
        return cli_bad_usage(state, "what stands after '--' goes to one script: '%.40s' is a second file",
                             submit->files[1]);
    if (!submit->command_count && !submit->file_count)
        return cli_bad_usage(state, "what? name a job file or a script, or a command after '--'");
    if (submit->json && submit->parsable)
        return cli_bad_usage(state, "either --json or --parsable, not both");
    return 0;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct submit_command *submit = state->input;
    struct submit_options *wanted = &submit->options;
    enum optimizer optimizer;
    enum precision precision;
    struct error err;

    if (submit->in_file &&
        (key == ARGP_KEY_ARG || key == KEY_PARSABLE || key == KEY_NO_RETRY || key == CLI_JSON_KEY || key == 'W'))
        return cli_bad_usage(state, "'%.40s' belongs on the command line, not into a #CARMA line",
                             key == ARGP_KEY_ARG ? arg : state->argv[state->next - 1]);
    switch (key) {
    case 'J':
        wanted->name = arg;
        return 0;
    case 'G':
        return take_number("--gpus", arg, RECORD_MAX_GPUS, &wanted->gpus, state);
    case KEY_GPU_MEMORY:
        return take_memory("--gpu-memory", arg, &wanted->gpu_memory_bytes, state);
    case KEY_MPS_THREADS:
        return take_number("--mps-threads", arg, 100, &wanted->mps_threads_percent, state);
    case KEY_MPS_MEMORY_LIMIT:
        return take_memory("--mps-memory-limit", arg, &wanted->mps_memory_limit_bytes, state);
    case KEY_CPUS:
        return take_number("--cpus", arg, SPEC_MAX_CPUS, &wanted->cpus, state);
    case KEY_HOST_MEMORY:
        return take_host_memory(arg, &wanted->host_memory_bytes, state);
    case KEY_MAX_SLOWDOWN:
        if (parse_ratio(arg, &wanted->max_slowdown_permille, &err) || wanted->max_slowdown_permille == 0)
            return cli_bad_usage(state, "--max-slowdown '%.40s' is no factor of at least 1, such as 1.5", arg);
        return 0;
    case KEY_EXCLUSIVE:
        wanted->exclusive = true;
        return 0;
    case KEY_SHARE:
        wanted->share = arg;
        return take_share(arg, state);
    case 't':
        return job_time_parse(arg, &wanted->time_limit_ns, &err) ? cli_bad_usage(state, "--time: %s", err.text) : 0;
    case KEY_SIGNAL:
        return job_signal_parse(arg, &wanted->signal, &wanted->signal_before_ns, &err)
                   ? cli_bad_usage(state, "--signal: %s", err.text)
                   : 0;
    case KEY_REQUEUE:
        wanted->requeue = true;
        return 0;
    case 'H':
        wanted->hold = true;
        return 0;
    case 'D':
        wanted->directory = arg;
        return 0;
    case 'o':
        wanted->output = arg;
        return 0;
    case 'e':
        wanted->error = arg;
        return 0;
    case KEY_CONDA:
        wanted->conda = arg;
        return 0;
    case KEY_SUMMARY:
        wanted->summary = arg;
        return 0;
    case KEY_CAPTURE:
        wanted->capture = arg;
        return 0;
    case KEY_OPTIMIZER:
        wanted->optimizer = arg;
        return optimizer_parse(arg, &optimizer, &err) ? cli_bad_usage(state, "--optimizer: %s", err.text) : 0;
    case KEY_PRECISION:
        wanted->precision = arg;
        return precision_parse(arg, &precision, &err) ? cli_bad_usage(state, "--precision: %s", err.text) : 0;
    case KEY_BATCH_SIZE:
        return take_number("--batch-size", arg, INT32_MAX, &wanted->batch_size, state);
    case KEY_PARSABLE:
        submit->parsable = true;
        return 0;
    case KEY_NO_RETRY:
        submit->no_retry = true;
        return 0;
    case CLI_JSON_KEY:
        submit->json = true;
        return 0;
    case 'W':
        submit->wait = true;
        return 0;
    case ARGP_KEY_ARG:
        return take_argument(submit, state);
    case ARGP_KEY_END:
        return submit->in_file ? 0 : check_usage(submit, state);
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

const struct argp submit_argp = {
    .options = options,
    .parser = parse,
    .args_doc = "FILE...\nSCRIPT [-- ARGUMENT...]\n- [-- ARGUMENT...]\n-- COMMAND [ARGUMENT...]",
    .doc = "Submit jobs: job files (.rad), scripts with #CARMA or #SBATCH lines, or a command after '--'. Several files are "
           "all accepted, or none is."
           "\vA script is copied now: later changes of the file do not reach the job. '-' is a script on standard input. It says "
           "what it needs in comment lines, in the words of these options: '#CARMA --gpus 2'; '#SBATCH' lines are read where "
           "they have a meaning here. What the command line says goes before what a file says. A job gets the environment of "
           "the shell that submits it.",
};
