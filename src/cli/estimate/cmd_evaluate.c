/* carma evaluate: an estimator compared with measured runs, or what is predicted of sharing with measured jobs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/nodetime.h"
#include "base/units.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/estimate/estimate.h"
#include "cli/estimate/evaluate.h"
#include "cli/show/term.h"
#include "cli/show/answer.h"

#define BAR_WIDTH    30
#define BAR_EVERY_NS (NS_PER_SEC / 10)
#define BAR_AFTER_NS NS_PER_SEC /* faster work needs none */
#define BINS_MIN_GB  0.01
#define BINS_MAX_GB  1000

enum {
    KEY_DATASET = 0x200,
    KEY_PAIRS,
    KEY_THREADS,
    KEY_MIG,
    KEY_CAPTURES,
    KEY_PROFILE,
    KEY_ESTIMATOR,
    KEY_BINS,
    KEY_QUANTILE,
    KEY_FOLDS,
    KEY_ROWS
};

static const struct argp_option options[] = {
    {"dataset", KEY_DATASET, "KIND:FILE", 0,
     "measured runs; KIND is mlp, cnn, transformer, real (real:FILE,LAYERS) or timm", 1},
    {"pairs", KEY_PAIRS, "FILE", 0, "instead: measured pairs of jobs under MPS, beside what carma predicts of them", 1},
    {"threads", KEY_THREADS, "FILE", 0, "instead: measured jobs under MPS with a share of the threads each", 1},
    {"mig", KEY_MIG, "FILE", 0, "instead: measured jobs alone on MIG instances", 1},
    {"captures", KEY_CAPTURES, "DIR", 0, "of timm's models, NAME.capture each", 1},
    {"profile", KEY_PROFILE, "FILE", 0,
     "the machine they were measured on, as carma calibrate writes it (default: that of the published runs)", 1},
    {"estimator", KEY_ESTIMATOR, "NAME", 0, "the one to ask, as carma estimate has it (default: auto)", 2},
    {"quantile", KEY_QUANTILE, "Q", 0, "the probability with which an answer is to be enough (default: 0.98)", 2},
    {"folds", KEY_FOLDS, NULL, 0, "ask about each row that was trained on the cross-validation's models without it", 2},
    {"bins", KEY_BINS, "GB", 0, "width of the bins, of 1000 MiB for each GB (default: 1 for mlp, else 8)", 3},
    {"rows", KEY_ROWS, NULL, 0, "print each row with its estimate, as CSV", 4},
    {"json", CLI_JSON_KEY, NULL, 0, "print JSON (docs/formats/cli.md)", 4},
    {0},
};

/* A decimal number in [low, high] and nothing else. */
static bool parse_number(const char *text, double low, double high, double *value)
{
    char *end;

    *value = strspn(text, "0123456789.") == strlen(text) ? strtod(text, &end) : -1;
    return *value >= low && *value <= high && !*end;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct evaluate_options *wanted = state->input;
    double value;

    switch (key) {
    case KEY_DATASET:
        wanted->dataset = arg;
        return 0;
    case KEY_PAIRS:
        wanted->pairs = arg;
        return 0;
    case KEY_THREADS:
        wanted->threads = arg;
        return 0;
    case KEY_MIG:
        wanted->mig = arg;
        return 0;
    case KEY_CAPTURES:
        wanted->captures = arg;
        return 0;
    case KEY_PROFILE:
        wanted->profile = arg;
        return 0;
    case KEY_ESTIMATOR:
        wanted->estimator = estimator_find(arg);
        return wanted->estimator ? 0 : estimate_refuse(state, arg);
    case KEY_BINS:
        return parse_number(arg, BINS_MIN_GB, BINS_MAX_GB, &wanted->bins_gb)
                   ? 0
                   : cli_bad_usage(state, "--bins: '%.40s' is not a number of GB from %g to %g", arg, BINS_MIN_GB,
                                   (double)BINS_MAX_GB);
    case KEY_QUANTILE:
        if (!parse_number(arg, 0.001, 0.999, &value))
            return cli_bad_usage(state, "--quantile: '%.40s' is not a probability from 0.001 to 0.999", arg);
        wanted->quantile_permille = (int32_t)(value * 1000 + 0.5);
        return 0;
    case KEY_FOLDS:
        wanted->folds = true;
        return 0;
    case KEY_ROWS:
        wanted->rows = true;
        return 0;
    case CLI_JSON_KEY:
        wanted->json = true;
        return 0;
    case ARGP_KEY_ARG:
        return cli_bad_usage(state, "takes no arguments: '%.40s' is too much (--dataset?)", arg);
    case ARGP_KEY_END:
        switch (!!wanted->dataset + !!wanted->pairs + !!wanted->threads + !!wanted->mig) {
        case 0:
            return cli_bad_usage(state, "on what? name measured runs with --dataset, or jobs that share a GPU with "
                                        "--pairs, --threads or --mig");
        case 1:
            break;
        default:
            return cli_bad_usage(state, "one of --dataset, --pairs, --threads and --mig, not several");
        }
        if (!wanted->dataset && wanted->rows)
            return cli_bad_usage(state, "--rows is for --dataset");
        return wanted->json && wanted->rows ? cli_bad_usage(state, "either --json or --rows, not both") : 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

const struct argp evaluate_argp = {
    .options = options,
    .parser = parse,
    .doc =
        "Compare an estimator with measured training runs, or with --pairs, --threads or --mig what is predicted of "
        "jobs that "
        "share a "
        "GPU. "
        "The files have the columns of docs/formats/datasets.md."
        "\vBins and errors are about the best guess. How often an answer is too low, and by how much it is too high, "
        "is about the answer at the quantile. Runs out of memory are a bin of their own and stay out of the errors.",
};

struct progress {
    int64_t begun_ns, shown_ns; /* wall */
};

static void show_progress(size_t done, size_t rows, void *context)
{
    struct progress *progress = context;
    int64_t now = nodetime_monotonic_wall_ns();

    if (now - progress->begun_ns < BAR_AFTER_NS || now - progress->shown_ns < BAR_EVERY_NS)
        return;
    progress->shown_ns = now;
    CLEANUP(free_ptr) char *bar = term_bar((double)done, (double)rows, BAR_WIDTH);
    fprintf(stderr, TERM_LINE_CLEAR "%s %zu/%zu rows", bar, done, rows);
    fflush(stderr);
    cli_progress_shown = true;
}

static void print(const struct evaluate_options *wanted, const struct dataset *dataset,
                  const struct evaluation *evaluation)
{
    CLEANUP(strbuf_release) struct strbuf out = {0};

    if (wanted->json) {
        CLEANUP(json_release) json_t *report = evaluate_json(wanted, dataset, evaluation);
        cli_print_json(report);
        return;
    }
    if (wanted->rows)
        evaluate_format_rows(evaluation, &out);
    else
        evaluate_format(wanted, dataset, evaluation, term_width(stdout), term_colour(stdout), &out);
    fputs(out.text, stdout);
}

static int run(struct evaluate_options *wanted, const struct dataset *dataset)
{
    struct progress progress = {.begun_ns = nodetime_monotonic_wall_ns()};
    struct evaluation_options asked = {.estimator = wanted->estimator,
                                       .quantile_permille = wanted->quantile_permille,
                                       .folds = wanted->folds,
                                       .progress = isatty(STDERR_FILENO) ? show_progress : NULL,
                                       .progress_context = &progress};
    struct evaluation evaluation;
    struct error err;
    int rc;

    if (wanted->bins_gb <= 0)
        wanted->bins_gb = dataset->kind == DATASET_MLP ? 1 : 8;
    asked.bin_bytes = (int64_t)(wanted->bins_gb * (double)METRICS_BIN_GB_BYTES);
    if (dataset->profile->memory_bytes / asked.bin_bytes >= METRICS_MAX_CLASSES)
        return cli_fail("bins of %g GB are too narrow for a GPU of %lld MiB: choose wider ones", wanted->bins_gb,
                        (long long)(dataset->profile->memory_bytes / MIB));
    rc = evaluate(&evaluation, dataset, &asked, &err);
    cli_end_progress();
    if (rc)
        return cli_fail("%s", err.text);
    print(wanted, dataset, &evaluation);
    evaluation_release(&evaluation);
    return CLI_OK;
}

int cmd_evaluate(struct cli *cli, int argc, char **argv)
{
    struct evaluate_options wanted = {.estimator = &estimator_auto, .quantile_permille = ESTIMATE_QUANTILE_PERMILLE};
    struct machine_profile profile;
    struct dataset dataset;
    struct error err;
    int status;

    if (!cli_parse(cli, argc, argv, &wanted, &status))
        return status;
    if (wanted.pairs)
        return evaluate_pairs(&wanted);
    if (wanted.threads)
        return evaluate_threads(&wanted);
    if (wanted.mig)
        return evaluate_mig(&wanted);
    if (wanted.profile && estimate_read_profile(&profile, wanted.profile, &err))
        return cli_fail("%s", err.text);
    if (dataset_read(&dataset, wanted.dataset, wanted.captures, &err))
        return cli_fail("%s", err.text);
    if (wanted.profile)
        dataset.profile = &profile;
    status = run(&wanted, &dataset);
    dataset_release(&dataset);
    return status;
}
