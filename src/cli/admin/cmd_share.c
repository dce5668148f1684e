/* carma admin share: an administrator gives a user a share of the GPUs. */
#include <inttypes.h>
#include <stdio.h>

#include "base/memory.h"
#include "base/units.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/show/answer.h"

#define MOST_SHARE 1000

struct share_options {
    bool json;
    const char *user;
    int64_t share; /* 0: not said */
};

static const struct argp_option options[] = {CLI_OPTION_JSON, {0}};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct share_options *wanted = state->input;

    switch (key) {
    case CLI_JSON_KEY:
        wanted->json = true;
        return 0;
    case ARGP_KEY_ARG:
        if (!wanted->user) {
            wanted->user = arg;
            return 0;
        }
        if (wanted->share)
            return cli_bad_usage(state, "'%.40s' is one argument too many", arg);
        if (parse_integer(arg, 1, MOST_SHARE, &wanted->share, NULL) != 0)
            return cli_bad_usage(state, "'%.40s' is not a share: a whole number from 1 to %d", arg, MOST_SHARE);
        return 0;
    case ARGP_KEY_END:
        if (!wanted->share)
            return cli_bad_usage(state, "which share shall whom be given? carma admin share alice 3");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

const struct argp admin_share_argp = {
    .options = options,
    .parser = parse,
    .args_doc = "USER SHARE",
    .doc =
        "Give a user a share of the GPUs under fair turns. All have 1; one with 3 gets three times as much as they "
        "do, while all have jobs that wait."
        "\vUSER is the name of one who has had a job, or a uid. carmad keeps it over restarts; 'carma share' shows it. "
        "Who is named by the setting 'shares' has the share that it says.",
};

int cmd_admin_share(struct cli *cli, int argc, char **argv)
{
    CLEANUP(json_release) json_t *body = NULL;
    CLEANUP(json_release) json_t *reply = NULL;
    struct share_options wanted = {0};
    struct error err;
    int status;

    if (!cli_parse(cli, argc, argv, &wanted, &status))
        return status;
    body = json_pack("{s:s, s:I}", "user", wanted.user, "share", (json_int_t)wanted.share);
    if (!body)
        return cli_fail("'%s' is not UTF-8: it is no user", wanted.user);
    if (cli_call(cli, "POST", "/v1/share", body, &reply, &err) != 0)
        return cli_fail("%s", err.text);
    if (wanted.json) {
        cli_print_json(reply);
    } else {
        CLEANUP(free_ptr) char *user = answer_safe_text(reply, "user");
        printf("%s has a share of %" PRId64 "\n", user, wanted.share);
    }
    return CLI_OK;
}
