/* carma evaluate: carma-program reads the measured runs, and asks `carma estimate --questions` about them. */
#include <string.h>

#include "base/install.h"
#include "base/memory.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/programs/programs.h"

static const struct argp_option options[] = {
    {"dataset", 0x200, "KIND:FILE", 0, "measured runs; KIND is mlp, cnn, transformer, real (real:FILE,LAYERS) or timm",
     1},
    {"pairs", 0x201, "FILE", 0, "instead: measured pairs of jobs under MPS, beside what carma predicts of them", 1},
    {"threads", 0x202, "FILE", 0, "instead: measured jobs under MPS with a share of the threads each", 1},
    {"mig", 0x203, "FILE", 0, "instead: measured jobs alone on MIG instances", 1},
    {"captures", 0x204, "DIR", 0, "of timm's models, NAME.capture each", 1},
    {"profile", 0x205, "FILE", 0,
     "the machine they were measured on, as carma calibrate writes it (default: that of the published runs)", 1},
    {"estimator", 0x206, "NAME", 0, "the one to ask, as carma estimate has it (default: auto)", 2},
    {"quantile", 0x207, "Q", 0, "the probability with which an answer is to be enough (default: 0.98)", 2},
    {"folds", 0x208, NULL, 0, "ask about each row that was trained on the cross-validation's models without it", 2},
    {"bins", 0x209, "GB", 0, "width of the bins, of 1000 MiB for each GB (default: 1 for mlp, else 8)", 3},
    {"rows", 0x20a, NULL, 0, "print each row with its estimate, as CSV", 4},
    {"json", CLI_JSON_KEY, NULL, 0, "print JSON (docs/formats/cli.md)", 4},
    {"questions", 0x20b, NULL, OPTION_HIDDEN, "print the questions, for programs of bench", 4},
    {0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    if (key == ARGP_KEY_ARG)
        return cli_bad_usage(state, "takes no arguments: '%.40s' is too much (--dataset?)", arg);
    return words_pass(state->input, key, arg, state);
}

const struct argp evaluate_argp = {
    .options = options,
    .parser = parse,
    .doc =
        "Compare an estimator with measured training runs, or with --pairs, --threads or --mig what is predicted of "
        "jobs that share a GPU. The files have the columns of docs/formats/datasets.md."
        "\vBins and errors are about the best guess. How often an answer is too low, and by how much it is too high, "
        "is about the answer at the quantile. Runs out of memory are a bin of their own and stay out of the errors.",
};

int cmd_evaluate(struct cli *cli, int argc, char **argv)
{
    CLEANUP(free_ptr) char *tools = install_beside("carma-tools");
    struct program_words program;
    int status;

    words_begin(&program, cli, argc, "carma-program", argv[0]);
    program.words[program.count++] = xasprintf("--carma=%s", tools); /* this one, which has the estimators */
    if (cli_parse(cli, argc, argv, &program, &status))
        status = words_run(&program);
    words_release(&program);
    return status;
}
