/* Why a GPU takes no job, or not everybody's: the set of grounds that hold, each with who, since or until when, and
 * why.
 *
 * How this file works: the grounds of core/gpus/closed.def close it to all: words_of has who and why of each, and a
 * further row needs its case there. Behind them node_closed_to_json tells what keeps some away: dead starts
 * (core/gpus/closing.h), a reservation for users that has begun (core/gpus/allotment.h), and a job for which the GPU is
 * reserved. Reservations are listed, with those that are to come, by node_reservations_to_json. */
#include <inttypes.h>

#include "api/or_null.h"
#include "base/json/moment.h"
#include "base/nodetime.h"
#include "base/strbuf.h"
#include "core/core.h"
#include "core/gpus/allotment.h"
#include "core/gpus/closing.h"
#include "core/ledger.h"
#include "daemon/node/node_internal.h"
#include "daemon/view/owners.h"

enum ground {
#define CLOSED(member, reason) GROUND_##member,
#include "core/gpus/closed.def"
    GROUND_COUNT
};

struct words {
    char *why;      /* owned */
    const char *by; /* borrowed: the user who closed it; NULL: nobody did */
    int64_t since_ns;
};

static struct words of_drain(const struct node *node, const struct record_drain *drain)
{
    return (struct words){xstrdup(drain->why), owners_name(node->daemon->owners, drain->uid), drain->since_ns};
}

static struct words words_of(const struct node *node, const struct node_gpu *entry, const struct gpu *gpu,
                             enum ground ground)
{
    switch (ground) {
    case GROUND_drained:
        return of_drain(node, gpu_drain(node->daemon->core, gpu));
    case GROUND_node_drained:
        return of_drain(node, gpu_drain(node->daemon->core, NULL));
    default:
        return (struct words){.why = node_why_lost(node, entry, gpu)};
    }
}

static bool holds(const struct gpu *gpu, enum ground ground)
{
    switch (ground) {
#define CLOSED(member, reason)                                                                                         \
    case GROUND_##member:                                                                                              \
        return gpu->member;
#include "core/gpus/closed.def"
    default:
        return false;
    }
}

char *node_why_closed(const struct node *node, const struct node_gpu *entry, const struct gpu *gpu)
{
    struct strbuf out = {0};

    if (!gpu)
        return node_why_lost(node, entry, NULL);
    for (enum ground ground = 0; ground < GROUND_COUNT; ground++) {
        struct words words = holds(gpu, ground) ? words_of(node, entry, gpu, ground) : (struct words){0};
        const char *comma = out.length ? "; " : "";
        if (words.by)
            strbuf_printf(&out, "%s%sdrained by %s: %s", comma, ground == GROUND_node_drained ? "the node is " : "",
                          words.by, words.why);
        else if (words.why)
            strbuf_printf(&out, "%s%s", comma, words.why);
        free(words.why);
    }
    return out.length ? strbuf_steal(&out) : NULL;
}

static void add(json_t *list, const char *ground, const char *by, const char *user, uint64_t job, int64_t since_ns,
                int64_t until_ns, const char *why)
{
    json_t *one = json_pack("{s:s, s:s?, s:s?, s:o, s:o, s:o, s:s?}", "ground", ground, "by", by, "user", user, "job",
                            integer_or_null((int64_t)job, job), "since_ns",
                            integer_or_null(nodetime_shown_ns(since_ns), since_ns), "until_ns",
                            integer_or_null(nodetime_shown_ns(until_ns), until_ns), "why", why);

    json_array_append_new(list, moment_twin(moment_twin(one, "since_ns"), "until_ns"));
}

static json_t *users_to_json(const struct node *node, const struct record_allotted *allotted)
{
    json_t *list = json_array();

    for (uint32_t i = 0; i < allotted->user_count; i++)
        json_array_append_new(list, json_string(owners_name(node->daemon->owners, allotted->users[i])));
    return list;
}

json_t *node_reservation_to_json(const struct node *node, const struct record_allotted *allotted)
{
    json_t *gpus = json_array();

    for (uint32_t i = 0; i < allotted->gpu_count; i++)
        json_array_append_new(gpus, json_integer(allotted->gpus[i]));
    json_t *json = json_pack(
        "{s:I, s:o, s:o, s:I, s:I, s:s, s:o}", "reservation", (json_int_t)allotted->number, "gpus", gpus, "users",
        users_to_json(node, allotted), "from_ns", (json_int_t)nodetime_shown_ns(allotted->from_ns), "until_ns",
        (json_int_t)nodetime_shown_ns(allotted->until_ns), "by", owners_name(node->daemon->owners, allotted->uid),
        "why", text_or_null(*allotted->why ? allotted->why : NULL));
    return moment_twin(moment_twin(json, "from_ns"), "until_ns");
}

json_t *node_reservations_to_json(const struct node *node)
{
    uint32_t count;
    const struct record_allotted *allotments = core_allotments(node->daemon->core, &count);
    json_t *list = json_array();

    for (uint32_t i = 0; i < count; i++)
        json_array_append_new(list, node_reservation_to_json(node, &allotments[i]));
    return list;
}

/* The reservation that the GPU is under now; NULL: none. */
static const struct record_allotted *reservation_of(const struct node *node, const struct gpu *gpu)
{
    uint32_t count;
    const struct record_allotted *allotments = core_allotments(node->daemon->core, &count);

    for (uint32_t i = 0; i < count; i++)
        for (uint32_t k = 0; k < allotments[i].gpu_count; k++)
            if (allotments[i].gpus[k] == gpu->number && allotments[i].from_ns <= nodetime_now_ns())
                return &allotments[i];
    return NULL;
}

json_t *node_closed_to_json(const struct node *node, const struct node_gpu *entry, const struct gpu *gpu)
{
    static const char *const names[] = {
#define CLOSED(member, reason) #member,
#include "core/gpus/closed.def"
    };
    bool all = closing_until_ns(gpu, CLOSING_EVERYBODY) != 0;
    const struct record_allotted *allotted = reservation_of(node, gpu);
    json_t *list = json_array();

    for (enum ground ground = 0; ground < GROUND_COUNT; ground++) {
        struct words words = holds(gpu, ground) ? words_of(node, entry, gpu, ground) : (struct words){0};
        if (holds(gpu, ground))
            add(list, names[ground], words.by, NULL, 0, words.since_ns, 0, words.why);
        free(words.why);
    }
    for (uint32_t i = 0; i < gpu->closing.count / CLOSING_NUMBERS && !(all && i > 0); i++) {
        uint32_t uid = all ? CLOSING_EVERYBODY : gpu->closing.users[i].uid;
        if (closing_until_ns(gpu, uid))
            add(list, "dead_starts", NULL, all ? NULL : owners_name(node->daemon->owners, uid), 0, 0,
                closing_until_ns(gpu, uid), "programs did not start there");
    }
    if (allotted) {
        CLEANUP(free_ptr) char *by = xstrdup(owners_name(node->daemon->owners, allotted->uid));
        add(list, "reserved_for_users", by, owners_name(node->daemon->owners, allotted->users[0]), 0, allotted->from_ns,
            allotted->until_ns, *allotted->why ? allotted->why : NULL);
    }
    if (gpu->reserved_for)
        add(list, "reserved", NULL, NULL, gpu->reserved_for, gpu->reserved_ns, 0, "it is kept for a job that waits");
    return list;
}
