/* How this file works: a body becomes an input of the core, which checks numbers and overlaps (core/gpus/allotment.c);
 * here is what people may get wrong: users (user_named.h), times, which are wall time outside, and the shape. */
#include "daemon/request/reservations.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/json/json_read.h"
#include "base/memory.h"
#include "base/nodetime.h"
#include "base/text/printable.h"
#include "core/gpus/allotment.h"
#include "core/ledger.h"
#include "daemon/engine/engine.h"
#include "daemon/log.h"
#include "daemon/node/node.h"
#include "daemon/request/actions.h"
#include "daemon/request/admin_only.h"
#include "daemon/request/user_named.h"
#include "daemon/view/owners.h"

#define SHAPE                                                                                                          \
    "{\"gpus\": [NUMBER], \"users\": [NAME], \"from_ns\": TIME, \"until_ns\": TIME, \"reason\": TEXT} is expected"

static const struct json_bounds bounds = {.values = 11 + RECORD_MAX_GPUS + ALLOTMENT_USERS, .depth = 2, .bytes = 4096};

#define REFUSAL "to reserve GPUs"

static int refused(struct error *err, int status, const char *text)
{
    error_set(err, EINVAL, "%s", text);
    return status;
}

/* Who is named twice is named once. */
static void add_once(uint32_t number, uint32_t *numbers, uint32_t *count)
{
    for (uint32_t i = 0; i < *count; i++)
        if (numbers[i] == number)
            return;
    numbers[(*count)++] = number;
}

static bool read_gpus(const json_t *list, struct record_allotted *allotted)
{
    json_t *gpu;
    size_t i;

    if (!json_is_array(list) || json_array_size(list) > RECORD_MAX_GPUS)
        return false;
    json_array_foreach (list, i, gpu) {
        if (!json_is_integer(gpu) || json_integer_value(gpu) < 0 || json_integer_value(gpu) >= RECORD_NO_GPU)
            return false;
        add_once((uint32_t)json_integer_value(gpu), allotted->gpus, &allotted->gpu_count);
    }
    return true;
}

/* 0; or the answer's status. */
static int read_users(const struct daemon *daemon, const json_t *list, struct record_allotted *allotted,
                      struct error *err)
{
    json_t *name;
    size_t i;

    if (!json_is_array(list) || json_array_size(list) > ALLOTMENT_USERS)
        return refused(err, 400, SHAPE ", with at most 16 users");
    json_array_foreach (list, i, name) {
        struct user_named user = {.name = json_string_value(name)};
        bool found = user.name && user_find_named(daemon, &user);
        free(user.user);
        if (!found) {
            error_set(err, ENOENT, USER_UNNAMED, user.name ? user.name : "");
            return 404;
        }
        add_once(user.uid, allotted->users, &allotted->user_count);
    }
    return 0;
}

static int read_times(const json_t *body, int64_t now_ns, struct record_allotted *allotted, struct error *err)
{
    const json_t *from = json_object_get(body, "from_ns"), *until = json_object_get(body, "until_ns");
    json_int_t from_ns = from ? json_integer_value(from) : 0, until_ns = json_integer_value(until);

    if ((from && !json_is_integer(from)) || !json_is_integer(until) || from_ns < 0 || until_ns < 0 ||
        until_ns > INT64_MAX / 2 || from_ns > until_ns)
        return refused(err, 400, SHAPE);
    allotted->from_ns = from ? nodetime_of_shown_ns(from_ns) : now_ns;
    allotted->until_ns = nodetime_of_shown_ns(until_ns);
    if (allotted->from_ns < now_ns && allotted->until_ns > now_ns)
        allotted->from_ns = now_ns;
    return 0;
}

static int read_body(const struct daemon *daemon, const json_t *body, struct record *input, struct error *err)
{
    const json_t *gpus = json_object_get(body, "gpus"), *users = json_object_get(body, "users"),
                 *reason = json_object_get(body, "reason");
    struct record_allotted *allotted = &input->allotted;
    int status;

    if (json_object_size(body) != 3 + (size_t)(json_object_get(body, "from_ns") != NULL) + (size_t)(reason != NULL) ||
        !read_gpus(gpus, allotted) || (reason && !json_is_string(reason)))
        return refused(err, 400, SHAPE);
    if (json_string_length(reason) >= RECORD_WHY_SIZE)
        return refused(err, 400, "the reason must be a text of at most 127 bytes");
    if (reason)
        memcpy(allotted->why, json_string_value(reason), json_string_length(reason));
    printable_replace(allotted->why);
    status = read_times(body, input->at_ns, allotted, err);
    return status ? status : read_users(daemon, users, allotted, err);
}

/* To the reply, others' jobs on the GPUs, which go on: ids, and as people name them. */
static void add_others(const struct daemon *daemon, const struct record_allotted *allotted, json_t *reply)
{
    json_t *list = json_array(), *names = json_array();
    char name[JOB_NUMBER_TEXT];

    for (const struct job *job = core_jobs(daemon->core); job; job = job->hh.next) {
        bool there = false, is_his = false;
        for (uint32_t i = 0; i < allotted->gpu_count; i++)
            there |= job_placement_on(job, allotted->gpus[i]) != NULL;
        for (uint32_t i = 0; i < allotted->user_count; i++)
            is_his |= allotted->users[i] == job->wants->uid;
        if (!there || is_his)
            continue;
        json_array_append_new(list, json_integer((json_int_t)job->id));
        json_array_append_new(names, json_string(job_number(&daemon->views, job->id, name)));
    }
    json_object_set_new(reply, "others", list);
    json_object_set_new(reply, "other_names", names);
}

/* Feeds the core the input; the answer is given once it is stored. */
static void change(struct daemon *daemon, struct http_request *request, const struct record *input, json_t *reply,
                   const char *done, uint32_t number)
{
    struct error err;

    if (engine_input(daemon->engine, input, &err) != 0) {
        json_decref(reply);
        http_reply_error(request, 409, "%s", err.text);
        return;
    }
    daemon_log("reservation %" PRIu32 " is %s by uid %u", number, done, (unsigned)request->uid);
    actions_reply_once_stored(daemon, request, 200, reply,
                              "it takes effect once that works, unless carmad ends before");
    engine_turn(daemon->engine);
}

/* A reservation that the names of its users, and of the administrator, are looked up for: the answer has them. */
struct making {
    struct daemon *daemon;
    struct http_request *request;
    struct record input;
    uint32_t names_left;
};

static void on_named(bool stopping, void *user)
{
    struct making *making = user;
    struct record *input = &making->input;
    json_t *reply;

    if (--making->names_left > 0)
        return;
    if (stopping) {
        http_reply_stopping(making->request);
    } else {
        input->at_ns = nodetime_now_ns();
        input->allotted.number = core_next_allotment(making->daemon->core);
        reply = json_pack("{s:o}", "reservation", node_reservation_to_json(making->daemon->node, &input->allotted));
        add_others(making->daemon, &input->allotted, reply);
        change(making->daemon, making->request, input, reply, "made", input->allotted.number);
    }
    free(making);
}

static void make(struct daemon *daemon, struct http_request *request)
{
    struct record input = {.type = RECORD_GPUS_ALLOTTED, .at_ns = nodetime_now_ns()};
    struct making *making;
    struct error err;
    json_t *body;
    int status;

    input.allotted.uid = request->uid;
    json_read(request->body, request->body_length, JSON_REJECT_DUPLICATES, &bounds, &body, NULL);
    status = json_is_object(body) ? read_body(daemon, body, &input, &err) : refused(&err, 400, SHAPE);
    json_decref(body);
    if (status) {
        http_reply_error(request, status, "%s", err.text);
        return;
    }
    making = xmalloc(sizeof *making);
    *making = (struct making){daemon, request, input, 1 + input.allotted.user_count};
    owners_ask(daemon->owners, request->uid, on_named, making);
    for (uint32_t i = 0; i < input.allotted.user_count; i++)
        owners_ask(daemon->owners, input.allotted.users[i], on_named, making);
}

static void take_back(struct daemon *daemon, struct http_request *request)
{
    struct record input = {.type = RECORD_ALLOTMENT_ENDED, .at_ns = nodetime_now_ns()};
    const json_t *number;
    json_t *body;

    json_read(request->body, request->body_length, JSON_REJECT_DUPLICATES, &bounds, &body, NULL);
    number = json_object_get(body, "reservation");
    input.allotment_ended.uid = request->uid;
    if (!json_is_integer(number) || json_object_size(body) != 1 || json_integer_value(number) < 1 ||
        json_integer_value(number) > UINT32_MAX) {
        http_reply_error(request, 400, "{\"reservation\": NUMBER} is expected");
    } else {
        input.allotment_ended.number = (uint32_t)json_integer_value(number);
        change(daemon, request, &input, json_pack("{s:I}", "unreserved", json_integer_value(number)), "taken back",
               input.allotment_ended.number);
    }
    json_decref(body);
}

void reservations_make(struct daemon *daemon, struct http_request *request)
{
    admin_only(daemon, request, make, REFUSAL);
}

void reservations_take_back(struct daemon *daemon, struct http_request *request)
{
    admin_only(daemon, request, take_back, REFUSAL);
}
