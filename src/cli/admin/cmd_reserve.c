/* carma admin reserve, unreserve: GPUs that are for some users alone, from a time to another. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "api/later/begin.h"
#include "base/memory.h"
#include "base/nodetime.h"
#include "base/strbuf.h"
#include "base/text/gpu_list.h"
#include "base/units.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/show/answer.h"
#include "core/gpus/allotment.h"

#define GPUS_MOST 64 /* of one reservation, as many as one job may have */

struct reserve_options {
    bool json, any;
    const char *gpus, *users, *from, *lasts, *reason;
    int64_t number; /* to be taken back */
    json_t *body;   /* owned: the request; NULL: without options */
};

enum { KEY_GPUS = 0x100, KEY_USER, KEY_FROM, KEY_FOR, KEY_REASON };

static const struct argp_option reserve_options[] = {
    {"gpus", KEY_GPUS, "LIST", 0, "these, as 0-1,3", 0},
    {"user", KEY_USER, "LIST", 0, "for these users, as ada,bob: names of those who have had a job, or uids", 0},
    {"from", KEY_FROM, "TIME", 0, "from then on: now+2hours, 22:00, 2026-12-01T08:00 (default: now)", 0},
    {"for", KEY_FOR, "DURATION", 0, "for so long: 90m, 4h, 2d", 0},
    {"reason", KEY_REASON, "TEXT", 0, "why: shown with it", 0},
    CLI_OPTION_JSON,
    {0},
};

static const struct argp_option unreserve_options[] = {CLI_OPTION_JSON, {0}};

static error_t keep(struct reserve_options *wanted, const char **member, const char *arg)
{
    *member = arg;
    wanted->any = true;
    return 0;
}

/* "0-1,3" as numbers. False: it is no such list; `err`. */
static bool read_gpus(const char *text, json_t *list, struct error *err)
{
    CLEANUP(free_ptr) char *copy = xstrdup(text);
    struct gpu_list_item item;
    char *rest = copy;
    int status;

    while ((status = gpu_list_next(&rest, &item, err)) > 0) {
        if (item.uuid) {
            error_set(err, EINVAL, "'%.60s' is no GPU's number: write them like 0-1,3 (carma gpus lists them)",
                      item.uuid);
            return false;
        }
        if (json_array_size(list) + (item.last - item.first) >= GPUS_MOST) {
            error_set(err, ERANGE, "'%.60s' are more than %d GPUs, the most of one reservation", text, GPUS_MOST);
            return false;
        }
        for (; item.first <= item.last; item.first++)
            json_array_append_new(list, json_integer(item.first));
    }
    return status == 0;
}

/* What its options say, as the request has it. NULL: err says why. */
static json_t *make_body(const struct reserve_options *wanted, struct error *err)
{
    CLEANUP(json_release) json_t *body = json_pack("{s:[], s:[]}", "gpus", "users");
    CLEANUP(free_ptr) char *users = xstrdup(wanted->users);
    int64_t from_ns = nodetime_shown_now_ns(), lasts_ns;
    char *rest = users, *user;

    if (!read_gpus(wanted->gpus, json_object_get(body, "gpus"), err))
        return NULL;
    while ((user = strsep(&rest, ",")))
        if (json_array_append_new(json_object_get(body, "users"), json_string(user)) != 0) {
            error_set(err, EINVAL, "'%.40s' is not UTF-8: it is no user", user);
            return NULL;
        }
    if (wanted->from && begin_parse(wanted->from, from_ns, &from_ns, NULL) != 0) {
        error_set(err, EINVAL, "'%.40s' is not a time: write it like now+2hours, 22:00 or 2026-12-01T08:00",
                  wanted->from);
        return NULL;
    }
    if (parse_duration(wanted->lasts, &lasts_ns, err) != 0)
        return NULL;
    if (lasts_ns <= 0 || lasts_ns > ALLOTMENT_MOST_NS || lasts_ns > INT64_MAX - from_ns) {
        error_set(err, ERANGE, "a reservation for %.40s is none: write it like 90m, 4h or 2d, 366d at most",
                  wanted->lasts);
        return NULL;
    }
    if (wanted->from)
        json_object_set_new(body, "from_ns", json_integer(from_ns));
    json_object_set_new(body, "until_ns", json_integer(from_ns + lasts_ns));
    if (wanted->reason && json_object_set_new(body, "reason", json_string(wanted->reason)) != 0) {
        error_set(err, EINVAL, "the reason is not UTF-8");
        return NULL;
    }
    return steal_ptr(&body);
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct reserve_options *wanted = state->input;
    struct error err;

    switch (key) {
    case CLI_JSON_KEY:
        wanted->json = true;
        return 0;
    case KEY_GPUS:
        return keep(wanted, &wanted->gpus, arg);
    case KEY_USER:
        return keep(wanted, &wanted->users, arg);
    case KEY_FROM:
        return keep(wanted, &wanted->from, arg);
    case KEY_FOR:
        return keep(wanted, &wanted->lasts, arg);
    case KEY_REASON:
        return keep(wanted, &wanted->reason, arg);
    case ARGP_KEY_ARG:
        return cli_bad_usage(state, "'%.40s' is one argument too many: --gpus names GPUs, --user users", arg);
    case ARGP_KEY_END:
        if (!wanted->any)
            return 0;
        if (!wanted->gpus || !wanted->users || !wanted->lasts)
            return cli_bad_usage(state,
                                 "which, for whom, how long? carma admin reserve --gpus 0-1 --user ada --for 4h");
        wanted->body = make_body(wanted, &err);
        return wanted->body ? 0 : cli_bad_usage(state, "%s", err.text);
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static error_t parse_number(int key, char *arg, struct argp_state *state)
{
    struct reserve_options *wanted = state->input;

    switch (key) {
    case CLI_JSON_KEY:
        wanted->json = true;
        return 0;
    case ARGP_KEY_ARG:
        if (wanted->number)
            return cli_bad_usage(state, "'%.40s' is one argument too many", arg);
        if (parse_integer(arg, 1, UINT32_MAX, &wanted->number, NULL) != 0)
            return cli_bad_usage(state, "'%.40s' is no reservation's number: carma admin reserve lists them", arg);
        return 0;
    case ARGP_KEY_NO_ARGS:
        return cli_bad_usage(state, "which one? carma admin reserve lists them");
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

const struct argp admin_reserve_argp = {
    .options = reserve_options,
    .parser = parse,
    .doc =
        "Reserve GPUs for users, from a time to another: only their jobs are placed there then. Without options: list "
        "the reservations that are not over."
        "\vJobs of others that run there go on. Before it begins, another's job comes there only if it ends in time by "
        "its --time: one without a time limit does not. Two reservations of one GPU do not overlap. carmad keeps them "
        "over restarts; 'carma admin unreserve' takes one back.",
};

const struct argp admin_unreserve_argp = {
    .options = unreserve_options,
    .parser = parse_number,
    .args_doc = "NUMBER",
    .doc = "Take a reservation back: its GPUs are everybody's again at once.",
};

static void print_made(const json_t *reply)
{
    CLEANUP(free_ptr) char *text = answer_reservation(json_object_get(reply, "reservation"));
    const json_t *others = json_object_get(reply, "other_names");
    json_t *job;
    size_t i;

    puts(text);
    json_array_foreach (others, i, job) {
        CLEANUP(free_ptr) char *name = term_escape(json_string_value(job));
        printf("%s%s", i ? ", " : "others' jobs that run there go on: ", name ? name : "");
    }
    if (json_array_size(others))
        puts("");
}

static int list(struct cli *cli, const struct reserve_options *wanted)
{
    CLEANUP(json_release) json_t *reply = NULL;
    const json_t *reservations;
    struct error err;
    json_t *one;
    size_t i;

    if (cli_call(cli, "GET", "/v1/gpus", NULL, &reply, &err) != 0)
        return cli_fail("%s", err.text);
    reservations = json_object_get(reply, "reservations");
    if (wanted->json) {
        CLEANUP(json_release) json_t *shown = json_pack("{s:O?}", "reservations", reservations);
        cli_print_json(shown);
        return CLI_OK;
    }
    json_array_foreach (reservations, i, one) {
        CLEANUP(free_ptr) char *text = answer_reservation(one);
        puts(text);
    }
    if (json_array_size(reservations) == 0)
        puts("no GPU is reserved for users");
    return CLI_OK;
}

int cmd_admin_reserve(struct cli *cli, int argc, char **argv)
{
    struct reserve_options wanted = {0};
    CLEANUP(json_release) json_t *body = NULL;
    CLEANUP(json_release) json_t *reply = NULL;
    bool parsed;
    struct error err;
    int status;

    parsed = cli_parse(cli, argc, argv, &wanted, &status);
    body = wanted.body;
    if (!parsed)
        return status;
    if (!body)
        return list(cli, &wanted);
    if (cli_call(cli, "POST", "/v1/gpus/reserve", body, &reply, &err) != 0)
        return cli_fail("%s", err.text);
    if (wanted.json)
        cli_print_json(reply);
    else
        print_made(reply);
    return CLI_OK;
}

int cmd_admin_unreserve(struct cli *cli, int argc, char **argv)
{
    struct reserve_options wanted = {0};
    CLEANUP(json_release) json_t *body = NULL;
    CLEANUP(json_release) json_t *reply = NULL;
    struct error err;
    int status;

    if (!cli_parse(cli, argc, argv, &wanted, &status))
        return status;
    body = json_pack("{s:I}", "reservation", (json_int_t)wanted.number);
    if (cli_call(cli, "POST", "/v1/gpus/unreserve", body, &reply, &err) != 0)
        return cli_fail("%s", err.text);
    if (wanted.json)
        cli_print_json(reply);
    else
        printf("reservation %" PRId64 " is taken back\n", wanted.number);
    return CLI_OK;
}
