/* carma admin gpu: an administrator's word about a GPU. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "cli/cli.h"
#include "cli/commands.h"

struct gpu_options {
    bool open, json;
    int64_t gpu; /* -1: not said */
};

static const struct argp_option options[] = {CLI_OPTION_JSON, {0}};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct gpu_options *wanted = state->input;

    switch (key) {
    case CLI_JSON_KEY:
        wanted->json = true;
        return 0;
    case ARGP_KEY_ARG:
        if (!wanted->open) {
            wanted->open = strcmp(arg, "open") == 0;
            return wanted->open ? 0 : cli_bad_usage(state, "'%.40s' is not known: open", arg);
        }
        if (wanted->gpu >= 0)
            return cli_bad_usage(state, "'%.40s' is one GPU too many", arg);
        if (parse_integer(arg, 0, UINT32_MAX, &wanted->gpu, NULL) != 0)
            return cli_bad_usage(state, "'%.40s' is no GPU's number: carma gpus lists them", arg);
        return 0;
    case ARGP_KEY_END:
        if (!wanted->open || wanted->gpu < 0)
            return cli_bad_usage(state, "what shall be done with which GPU? carma admin gpu open 2");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

const struct argp admin_gpu_argp = {
    .options = options,
    .parser = parse,
    .args_doc = "open GPU",
    .doc = "Open a GPU on which programs did not start."
           "\vWhere programs of three workloads in a row die within a minute of their start by the GPU's failure, no "
           "job is "
           "placed on it for half an hour; then it is tried again. Once it is repaired this opens it at once.",
};

int cmd_admin_gpu(struct cli *cli, int argc, char **argv)
{
    struct gpu_options wanted = {.gpu = -1};
    json_t *body, *reply = NULL;
    struct error err;
    int status, rc;

    if (!cli_parse(cli, argc, argv, &wanted, &status))
        return status;
    body = json_pack("{s:I}", "gpu", (json_int_t)wanted.gpu);
    rc = cli_call(cli, "POST", "/v1/gpus/open", body, &reply, &err);
    json_decref(body);
    if (rc != 0)
        return cli_fail("%s", err.text);
    if (wanted.json)
        cli_print_json(reply);
    else
        printf("GPU %" PRId64 " takes jobs again\n", wanted.gpu);
    json_decref(reply);
    return CLI_OK;
}
