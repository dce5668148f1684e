/* The options of `carma submit`, on its command line and in the #CARMA lines of a script. */
#include <stdlib.h>
#include <string.h>

#include "api/job_field.h"
#include "base/memory.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/job/sbatch.h"
#include "cli/job/submit.h"

#define FILES_MAX 10000

enum { KEY_PARSABLE = 0x200, KEY_NO_RETRY, KEY_MEM, KEY_PARAM };

static const struct argp_option options[] = {
#define FIELD(type, member, ...)
#define OPTION(type, member, least, most, option, letter, argument, group, help, ...)                                  \
    {option, SUBMIT_KEY(letter, member), argument, 0, help, JOB_FIELD_##group},
#include "api/job_fields.def"
    {"model-summary", SUBMIT_KEY(0, summary_name), "FILE", OPTION_HIDDEN, NULL,
     JOB_FIELD_MODEL}, /* as in earlier versions */
    {"param", KEY_PARAM, "NAME=VALUE,...", 0,
     "a job for each value, which is in its environment and stands for {NAME} in its command; of several, for each "
     "choice",
     4},
    {"wait", 'W', NULL, 0, "wait until it has ended, and exit as it did", 4},
    {"no-retry", KEY_NO_RETRY, NULL, 0, "fail at once where no daemon answers (default: try again for 30 s)", 4},
    {"mem", KEY_MEM, "SIZE", OPTION_HIDDEN, NULL, 4}, /* else it would be short for --memory */
    {"parsable", KEY_PARSABLE, NULL, 0, "print the job's id and nothing else", 4},
    {"json", CLI_JSON_KEY, NULL, 0, "print JSON as the daemon gives it", 4},
    {0},
};

error_t submit_take_option(int key, const char *arg, struct job_spec *spec, struct argp_state *state)
{
    static const int keys[] = {
#define FIELD(type, member, ...)                               0,
#define OPTION(type, member, least, most, option, letter, ...) SUBMIT_KEY(letter, member),
#include "api/job_fields.def"
    };

    for (size_t i = 0; i < job_field_count; i++) {
        CLEANUP(free_ptr) char *said = NULL;
        struct error err;
        if (keys[i] != key || !key)
            continue;
        said = xasprintf("--%s", job_fields[i].option);
        return job_field_parse(&job_fields[i], said, arg, spec, &err) ? cli_bad_usage(state, "%s", err.text) : 0;
    }
    return ARGP_ERR_UNKNOWN;
}

char *submit_option_of_others(const char *word)
{
    static const struct {
        const char *others, *own;
    } rows[] = {
        {" --name ", "--job-name"},
        {" -g --gpu --gpu-count --num-gpus --ngpus --gpus-per-task ", "--gpus"},
        {" --vram --gpu-ram --gmem ", "--gpu-memory"},
        {" --cwd --workdir --wd --directory ", "--chdir"},
        {" --stdout --log ", "--output"},
        {" --stderr ", "--error"},
        {" --walltime --time-limit --timeout ", "--time"},
        {" --wrap --command --cmd ", "a command behind '--'"},
    };
    CLEANUP(free_ptr) char *name = xasprintf(" %.*s ", (int)strcspn(word, "="), word);

    for (size_t i = 0; i < array_size(rows); i++)
        if (strstr(rows[i].others, name))
            return xasprintf("did you mean %s?", rows[i].own);
    return sbatch_remedy(word);
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
        return cli_bad_usage(state, "the words after '--' go to one script: '%.40s' is a second file",
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
    struct error err;

    if (submit->in_file && (key == ARGP_KEY_ARG || key == KEY_PARSABLE || key == KEY_NO_RETRY || key == KEY_PARAM ||
                            key == CLI_JSON_KEY || key == 'W'))
        return cli_bad_usage(state, "'%.40s' belongs on the command line, not into a #CARMA line",
                             key == ARGP_KEY_ARG ? arg : state->argv[state->next - 1]);
    switch (key) {
    case KEY_PARSABLE:
        submit->parsable = true;
        return 0;
    case KEY_MEM:
        return cli_bad_usage(
            state, "--mem is Slurm's: --gpu-memory %.40s is what it needs on each GPU, --memory %.40s the most RAM",
            arg, arg);
    case KEY_PARAM:
        return sweep_add(&submit->sweep, arg, &err) ? cli_bad_usage(state, "%s", err.text) : 0;
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
        return submit_take_option(key, arg, &submit->options, state);
    }
}

const struct argp submit_argp = {
    .options = options,
    .parser = parse,
    .args_doc = "FILE...\nSCRIPT [-- ARGUMENT...]\n- [-- ARGUMENT...]\n-- COMMAND [ARGUMENT...]",
    .doc = "Submit jobs: job files (.rad), scripts with #CARMA or #SBATCH lines, or a command after '--'. Several "
           "files are all accepted, or none is."
           "\vA script is copied now: later changes of the file do not reach the job. '-' is a script on standard "
           "input. It says its needs in comment lines, in the words of these options: '#CARMA --gpus 2'. '#SBATCH' "
           "lines are read where they have a meaning here. The command line goes before a file. A job gets the "
           "environment of the shell that submits it.",
};
