/* carma play: submits a trace's jobs at their times, follows them, and reports the thesis's metrics. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/spec_limits.h"
#include "base/file.h"
#include "base/install.h"
#include "base/memory.h"
#include "base/trust/guarded.h"
#include "base/units.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/play/play.h"
#include "cli/play/report.h"
#include "cli/show/term.h"
#include "cli/show/answer.h"
#include "trace/trace.h"
#include "trace/workloads.h"

struct play_options {
    const char *trace;
    const char *workloads;
    const char *output_dir;
    const char *program;
    bool estimates;
    bool json;
    double jitter;
    int64_t seed;
};

#define JITTER_MAX 0.3 /* as carma-train has it */
#define SEED_MAX   1000000000

enum { KEY_WORKLOADS = 0x200, KEY_ESTIMATES, KEY_JITTER, KEY_SEED, KEY_OUTPUT_DIR, KEY_PROGRAM };

static const struct argp_option options[] = {
    {"workloads", KEY_WORKLOADS, "FILE", 0, "the workloads that the trace names (default: the installed ones)", 0},
    {"estimates", KEY_ESTIMATES, NULL, 0, "declare each job's recorded memory estimate (GPUMemNet's) as its GPU memory",
     0},
    {"jitter", KEY_JITTER, "F", 0, "vary run times by a normal factor with this standard deviation, e.g. 0.03", 0},
    {"seed", KEY_SEED, "N", 0, "of the jitter (default 1): the same seed gives the same run times", 0},
    {"output-dir", KEY_OUTPUT_DIR, "DIR", 0, "where the jobs run and write; new or empty (default: a new one)", 0},
    {"program", KEY_PROGRAM, "FILE", 0, "each job's program, with carma-train's options (default: carma-train)", 0},
    {"json", CLI_JSON_KEY, NULL, 0, "print the report as JSON, for carma compare", 0},
    {0},
};

static error_t take_jitter(struct play_options *play, const char *arg, struct argp_state *state)
{
    char *end;

    play->jitter = strtod(arg, &end);
    if (end == arg || *end || !(play->jitter >= 0 && play->jitter <= JITTER_MAX))
        return cli_bad_usage(state, "jitter '%.40s' is not a number from 0 to %g", arg, JITTER_MAX);
    return 0;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct play_options *play = state->input;
    struct error err;

    switch (key) {
    case KEY_WORKLOADS:
        play->workloads = arg;
        return 0;
    case KEY_ESTIMATES:
        play->estimates = true;
        return 0;
    case KEY_JITTER:
        return take_jitter(play, arg, state);
    case KEY_SEED:
        return parse_integer(arg, 0, SEED_MAX, &play->seed, &err) ? cli_bad_usage(state, "seed: %s", err.text) : 0;
    case KEY_OUTPUT_DIR:
        play->output_dir = arg;
        return 0;
    case KEY_PROGRAM:
        play->program = arg;
        return 0;
    case CLI_JSON_KEY:
        play->json = true;
        return 0;
    case ARGP_KEY_ARG:
        if (play->trace)
            return cli_bad_usage(state, "one trace at a time: '%.40s' is too much", arg);
        play->trace = arg;
        return 0;
    case ARGP_KEY_END:
        return play->trace ? 0 : cli_bad_usage(state, "which trace? name its file");
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

const struct argp play_argp = {
    .options = options,
    .parser = parse,
    .args_doc = "TRACE.csv",
    .doc = "Submit a trace's jobs at their arrival times (in node time), and wait until all have ended. Then print "
           "makespan, wait time, run time and JCT, out-of-memory crashes, energy, memory and SM activity."
           "\vThe whole trace is checked before anything is submitted. Each job is a carma-train that behaves like its "
           "workload. As root, it is submitted by the user that the trace names, if any. Ctrl-C cancels the jobs that "
           "have not ended.",
};

static void on_interrupt(int number)
{
    play_interrupted = number;
}

/* The first one stops the play in order; a second one kills. Ignored signals stay ignored: nohup, a shell's
 * background. */
static void catch_interrupts(void)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction action = {.sa_handler = on_interrupt, .sa_flags = SA_RESETHAND}, old;

    for (size_t i = 0; i < array_size(numbers); i++) {
        if (sigaction(numbers[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
            sigaction(numbers[i], &action, NULL);
    }
}

static int require_empty(const char *path, int fd, struct error *err)
{
    int copy = dup(fd);
    DIR *dir = fdopendir(copy);
    struct dirent *entry;
    int rc = 0;

    if (!dir) {
        close_fd(&copy);
        return error_set(err, errno, "%s: %s", path, strerror(errno));
    }
    while (rc == 0 && (entry = readdir(dir))) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            rc = error_set(err, EEXIST, "--output-dir %s is not empty: name a new or an empty directory", path);
    }
    closedir(dir);
    return rc;
}

/* An absolute path, owned by the caller: of the directory that was looked at, since another may have made the name. */
static int make_directory(const char *given, char **directory, struct error *err)
{
    const char *temporary = getenv("TMPDIR");
    CLEANUP(free_ptr) char *opened = NULL;
    CLEANUP(close_fd) int fd = -1;
    struct error why;
    int rc;

    if (!given) {
        *directory = xasprintf("%s/carma-play-XXXXXX", temporary && *temporary == '/' ? temporary : "/tmp");
        return mkdtemp(*directory) ? 0 : error_set(err, errno, "%s: %s", *directory, strerror(errno));
    }
    rc = file_make_dirs(given, 0755, err);
    if (rc)
        return rc;
    fd = guarded_directory(given, O_RDONLY, &why);
    rc = fd < 0 ? error_set(err, fd, "--output-dir %s: %s", given, why.text) : require_empty(given, fd, err);
    if (rc)
        return rc;
    opened = xasprintf("/proc/self/fd/%d", fd);
    *directory = realpath(opened, NULL);
    return *directory ? 0 : error_set(err, errno, "%s: %s", given, strerror(errno));
}

/* Root's jobs are those of the trace's users: each needs an account, since jobs run with its groups. */
static int check_users(const char *path, const struct trace *trace, bool *several, struct error *err)
{
    for (size_t i = 0; i < trace->count && getuid() == 0; i++) {
        const struct trace_job *job = &trace->items[i];
        if (job->uid && !getpwuid(job->uid))
            return error_set(err, ENOENT,
                             "%s:%u: uid %u has no account here, so its job cannot run: make one, or play the trace as "
                             "a user other than root, who then has all jobs",
                             path, job->line, job->uid);
        *several |= job->uid != 0;
    }
    return 0;
}

/* They all write into it. */
static int open_to_users(const char *directory, struct error *err)
{
    int rc = guarded_own_directory(directory, 01777, err);

    if (rc)
        error_prefix(err, "--output-dir %s", directory);
    return rc;
}

static int read_trace(const struct play_options *wanted, const char *path, struct workloads *workloads,
                      struct trace *trace, struct error *err)
{
    int rc = workloads_read(workloads, path, err);

    return rc ? rc : trace_read(trace, wanted->trace, workloads, err);
}

static int check_gpus(const char *path, const struct trace *trace, int64_t node_gpus, struct error *err)
{
    for (size_t i = 0; i < trace->count; i++) {
        const struct trace_job *job = &trace->items[i];
        if (job->gpus > node_gpus)
            return error_set(err, EINVAL,
                             "%s:%u: workload '%s' needs %u GPUs, the node has %" PRId64 ": play it on a larger node",
                             path, job->line, job->workload->id, job->gpus, node_gpus);
    }
    return 0;
}

/* Each summary is read once, before anything is submitted. */
static int read_summaries(struct play *play, const char *path, const struct workloads *workloads,
                          const struct trace *trace, struct error *err)
{
    int rc = 0;

    play->first_workload = workloads->items;
    play->summaries = xcalloc(workloads->count, sizeof *play->summaries);
    for (size_t i = 0; rc == 0 && i < trace->count; i++) {
        const struct workload *workload = trace->items[i].workload;
        char **to = &play->summaries[workload - workloads->items];
        CLEANUP(free_ptr) char *file = workload_summary_path(workload, path);
        size_t length;
        if (file && !*to)
            rc = file_read(file, SPEC_MAX_SUMMARY, to, &length, err);
    }
    return rc;
}

static void make_items(struct play *play, const struct trace *trace)
{
    play->count = trace->count;
    play->items = xcalloc(trace->count, sizeof *play->items);
    for (size_t i = 0; i < trace->count; i++) {
        play->items[i].job = &trace->items[i];
        play->items[i].output = xasprintf("%s/%04zu-%s.out", play->directory, i + 1, trace->items[i].workload->id);
    }
}

static void release_items(struct play *play, size_t workload_count)
{
    for (size_t i = 0; i < play->count; i++) {
        free(play->items[i].output);
        json_decref(play->items[i].ended);
    }
    free(play->items);
    for (size_t i = 0; i < workload_count; i++)
        free(play->summaries[i]);
    free(play->summaries);
    usage_release(&play->usage);
}

static json_t *make_report(const struct play *play, const struct play_options *wanted, const json_t *status)
{
    CLEANUP(free_ptr) struct report_job *jobs = xcalloc(play->count, sizeof *jobs);
    static const char *const copied[] = {"policy", "memory_view", "share", "time_scale"};
    const char *slash = strrchr(wanted->trace, '/');
    json_t *report, *node = json_array(), *gpu;
    size_t i;

    for (i = 0; i < play->count; i++)
        jobs[i] = (struct report_job){.job = play->items[i].ended,
                                      .alone_s = (double)trace_job_duration_ns(play->items[i].job) / 1e9};
    report = report_compute(jobs, play->count, &play->usage);
    for (i = 0; i < array_size(copied); i++)
        json_object_set(report, copied[i], json_object_get(status, copied[i]));
    json_array_foreach (json_object_get(play->usage.latest, "gpus"), i, gpu)
        json_array_append(node, json_object_get(gpu, "name"));
    json_object_set_new(report, "node", node);
    json_object_set_new(report, "trace", json_string(slash ? slash + 1 : wanted->trace));
    json_object_set_new(report, "estimates", json_boolean(wanted->estimates));
    return report;
}

static int finish(const struct play *play, const struct play_options *wanted, const json_t *status)
{
    CLEANUP(json_release) json_t *report = make_report(play, wanted, status);
    CLEANUP(strbuf_release) struct strbuf out = {0};

    if (wanted->json) {
        cli_print_json(report);
    } else {
        report_format(&report, 1, term_width(stdout), term_colour(stdout), &out);
        fputs(out.text, stdout);
    }
    if (!report_is_incomplete(report))
        return CLI_OK;
    cli_fail("%" PRId64 " of %zu jobs did not complete: see carma queue --all and %s",
             answer_integer(report, "failed", 0), play->count, play->directory);
    return CLI_INCOMPLETE;
}

static int stop(struct play *play, int rc, const struct error *err)
{
    size_t cancelled = play_cancel_rest(play);

    if (rc != -EINTR)
        cli_fail("%s", err->text);
    cli_fail("stopped after %zu of %zu jobs: %zu unfinished ones cancelled", play->submitted, play->count, cancelled);
    return rc == -EINTR ? 128 + (int)play_interrupted : CLI_FAILURE;
}

/* The jobs' program; an absolute path, owned by the caller. */
static int find_program(const char *given, char **program, struct error *err)
{
    *program = given ? realpath(given, NULL) : install_path("bin/carma-train");
    if (*program && access(*program, X_OK) == 0)
        return 0;
    if (given)
        return error_set(err, errno, "--program %s: %s", given, strerror(errno));
    return error_set(err, errno, "%s: %s: the jobs of a trace run it; install carma as a whole", *program,
                     strerror(errno));
}

static int play_trace(struct cli *cli, const struct play_options *wanted, const char *path,
                      const struct workloads *known, const struct trace *trace)
{
    CLEANUP(json_release) json_t *status = NULL;
    CLEANUP(free_ptr) char *directory = NULL;
    CLEANUP(free_ptr) char *workloads = wanted->workloads ? realpath(wanted->workloads, NULL) : NULL;
    CLEANUP(free_ptr) char *train = NULL;
    struct play play = {.cli = cli, .interactive = isatty(STDERR_FILENO)};
    bool several = false;
    struct error err;
    int result;

    if (find_program(wanted->program, &train, &err))
        return cli_fail("%s", err.text);
    if (cli_call(cli, "GET", "/v1/status", NULL, &status, &err))
        return cli_fail("%s", err.text);
    if (check_users(wanted->trace, trace, &several, &err) ||
        check_gpus(wanted->trace, trace, answer_integer(status, "gpus", 0), &err) ||
        make_directory(wanted->output_dir, &directory, &err) || (several && open_to_users(directory, &err)))
        return cli_fail("%s", err.text);
    play.train = train;
    play.directory = directory;
    play.estimates = wanted->estimates;
    play.jitter = wanted->jitter;
    play.seed = wanted->seed;
    play.workloads = workloads;
    play.scale = answer_number(status, "time_scale", 1);
    usage_init(&play.usage);
    int rc = read_summaries(&play, path, known, trace, &err);
    if (rc) {
        result = cli_fail("%s", err.text);
    } else {
        make_items(&play, trace);
        fprintf(stderr, "playing %zu jobs; their output goes to %s\n", play.count, directory);
        catch_interrupts();
        rc = play_run(&play, &err);
        result = rc ? stop(&play, rc, &err) : finish(&play, wanted, status);
    }
    release_items(&play, known->count);
    return result;
}

int cmd_play(struct cli *cli, int argc, char **argv)
{
    struct play_options play = {.seed = 1};
    CLEANUP(free_ptr) char *installed = install_path("share/carma/workloads.csv");
    struct workloads workloads = {0};
    struct trace trace = {0};
    struct error err;
    int status;

    if (!cli_parse(cli, argc, argv, &play, &status))
        return status;
    const char *path = play.workloads ? play.workloads : installed;
    if (read_trace(&play, path, &workloads, &trace, &err))
        status = cli_fail("%s", err.text);
    else
        status = play_trace(cli, &play, path, &workloads, &trace);
    trace_release(&trace);
    workloads_release(&workloads);
    return status;
}
