/* carma admin drain, resume: whether further jobs come to a GPU, or to any. */
#include <inttypes.h>
#include <stdio.h>

#include "base/memory.h"
#include "base/strbuf.h"
#include "base/units.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/show/answer.h"

struct drain_options {
    bool drains, json;
    int64_t gpu; /* -1: all */
    const char *reason;
};

enum { KEY_GPU = 0x100, KEY_REASON };

#define OPTION_GPU                                                                                                     \
    {                                                                                                                  \
        "gpu", KEY_GPU, "GPU", 0, "this one alone (default: the node, with GPUs that come later)", 0                   \
    }

static const struct argp_option drain_options[] = {
    OPTION_GPU,
    {"reason", KEY_REASON, "TEXT", 0, "why: shown wherever the GPU is, and to jobs that wait for it", 0},
    CLI_OPTION_JSON,
    {0},
};

static const struct argp_option resume_options[] = {OPTION_GPU, CLI_OPTION_JSON, {0}};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct drain_options *wanted = state->input;

    switch (key) {
    case CLI_JSON_KEY:
        wanted->json = true;
        return 0;
    case KEY_GPU:
        if (parse_integer(arg, 0, UINT32_MAX - 1, &wanted->gpu, NULL) != 0)
            return cli_bad_usage(state, "'%.40s' is no GPU's number: carma gpus lists them", arg);
        return 0;
    case KEY_REASON:
        wanted->reason = arg;
        return 0;
    case ARGP_KEY_ARG:
        return cli_bad_usage(state, "'%.40s' is one argument too many: --gpu names a GPU", arg);
    case ARGP_KEY_END:
        if (wanted->drains && !wanted->reason)
            return cli_bad_usage(state, "why? carma admin drain --gpu 2 --reason 'its fan is loud'");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

const struct argp admin_drain_argp = {
    .options = drain_options,
    .parser = parse,
    .doc =
        "Let no further job come to a GPU, or to any. Jobs that are there run on to their end: 'carma gpus' shows the "
        "GPU as draining, then as drained."
        "\vcarmad keeps it over restarts, until 'carma admin resume'. A GPU and the node are drained each by itself: "
        "one "
        "takes jobs again when neither is, and nothing else closes it.",
};

const struct argp admin_resume_argp = {
    .options = resume_options,
    .parser = parse,
    .doc = "Let jobs come again to a GPU that was drained, or to the node."
           "\vWhat else keeps a GPU closed stays: it is named.",
};

/* "GPU 0, 2": those that stay closed. Owned by the caller; NULL: none. */
static char *still_closed(const json_t *reply)
{
    struct strbuf out = {0};
    json_t *gpu;
    size_t i;

    json_array_foreach (json_object_get(reply, "closed"), i, gpu)
        strbuf_printf(&out, "%s%" JSON_INTEGER_FORMAT, i ? ", " : "GPU ", json_integer_value(gpu));
    return out.length ? strbuf_steal(&out) : NULL;
}

static void print(const struct drain_options *wanted, const json_t *reply)
{
    CLEANUP(free_ptr) char *closed = wanted->drains ? NULL : still_closed(reply);
    CLEANUP(free_ptr)
    char *which = wanted->gpu < 0 ? xstrdup("the node") : xasprintf("GPU %" PRId64, wanted->gpu);

    if (wanted->drains)
        printf("%s takes no further jobs; those that run there go on\n", which);
    else if (closed)
        printf("%s is not drained any more; %s still takes no job: 'carma gpus' says why\n", which, closed);
    else
        printf("%s takes jobs again\n", which);
}

static int change(struct cli *cli, int argc, char **argv, bool drains)
{
    struct drain_options wanted = {.drains = drains, .gpu = -1};
    CLEANUP(json_release) json_t *body = json_object();
    CLEANUP(json_release) json_t *reply = NULL;
    struct error err;
    int status;

    if (!cli_parse(cli, argc, argv, &wanted, &status))
        return status;
    if (wanted.gpu >= 0)
        json_object_set_new(body, "gpu", json_integer(wanted.gpu));
    if (drains && json_object_set_new(body, "reason", json_string(wanted.reason)) != 0)
        return cli_fail("the reason is not UTF-8");
    if (cli_call(cli, "POST", drains ? "/v1/gpus/drain" : "/v1/gpus/resume", body, &reply, &err) != 0)
        return cli_fail("%s", err.text);
    if (wanted.json)
        cli_print_json(reply);
    else
        print(&wanted, reply);
    return CLI_OK;
}

int cmd_admin_drain(struct cli *cli, int argc, char **argv)
{
    return change(cli, argc, argv, true);
}

int cmd_admin_resume(struct cli *cli, int argc, char **argv)
{
    return change(cli, argc, argv, false);
}
