/* How this file works: each action is an input of the core (actions). It names a GPU, or where the action has `all`
 * may leave that out. The answer tells which of these GPUs take no job all the same, since another ground holds. */
#include "daemon/request/gpu_close.h"

#include <inttypes.h>
#include <string.h>

#include "base/json/json_read.h"
#include "base/memory.h"
#include "base/nodetime.h"
#include "base/text/printable.h"
#include "core/core.h"
#include "core/ledger.h"
#include "daemon/daemon.h"
#include "daemon/engine/engine.h"
#include "daemon/log.h"
#include "daemon/request/actions.h"
#include "daemon/request/admin_only.h"
#include "http/http.h"

struct action {
    const char *name;
    uint32_t type; /* of its record */
    bool all;      /* without a GPU it is about the node */
    bool reason;   /* it needs one */
    const char *done;
};

static const struct action actions[] = {
    {"open", RECORD_GPU_OPENED, false, false, "opened"},
    {"drain", RECORD_GPU_DRAINED, true, true, "drained"},
    {"resume", RECORD_GPU_RESUMED, true, false, "resumed"},
};

static const struct action *action_of(const char *path) /* NULL: none */
{
    const char *name = strrchr(path, '/') + 1;
    const struct action *action = actions;

    while (action < actions + array_size(actions) && strcmp(action->name, name) != 0)
        action++;
    return action < actions + array_size(actions) ? action : NULL;
}

/* Why the body is not the action's; NULL: it is. */
static const char *read_body(const struct action *action, const json_t *body, struct record *input)
{
    const json_t *gpu = json_object_get(body, "gpu"), *reason = json_object_get(body, "reason");
    json_int_t number = json_is_integer(gpu) ? json_integer_value(gpu) : -1;

    if (json_object_size(body) != (size_t)(gpu != NULL) + (reason != NULL) || (!gpu && !action->all) ||
        (gpu && (number < 0 || number >= RECORD_NO_GPU)) || !reason != !action->reason)
        return !action->all     ? "{\"gpu\": NUMBER} is expected"
               : action->reason ? "{\"gpu\": NUMBER, \"reason\": TEXT} is expected, without \"gpu\" for all"
                                : "{\"gpu\": NUMBER} is expected, or {} for all";
    input->drained.gpu = gpu ? (uint32_t)number : RECORD_NO_GPU;
    if (!reason)
        return NULL;
    if (!json_is_string(reason) || !json_string_length(reason) || json_string_length(reason) >= RECORD_WHY_SIZE)
        return "the reason must be a text of 1 to 127 bytes";
    memcpy(input->drained.why, json_string_value(reason), json_string_length(reason));
    printable_replace(input->drained.why);
    return NULL;
}

static json_t *closed_still(const struct core *core, uint32_t number)
{
    json_t *list = json_array();

    for (uint32_t i = 0; i < core_gpu_count(core); i++)
        if ((number == RECORD_NO_GPU || number == i) && !gpu_is_open(core_gpu(core, i)))
            json_array_append_new(list, json_integer(i));
    return list;
}

static void answer(struct daemon *daemon, struct http_request *request)
{
    const struct action *action = action_of(request->path);
    static const struct json_bounds bounds = {.values = 5, .depth = 1, .bytes = 512};
    struct record input = {.type = action->type, .at_ns = nodetime_now_ns()};
    CLEANUP(free_ptr) char *which = NULL;
    const char *wrong;
    json_t *body, *reply;
    struct error err;
    uint32_t gpu;

    json_read(request->body, request->body_length, JSON_REJECT_DUPLICATES, &bounds, &body, NULL);
    wrong = json_is_object(body) ? read_body(action, body, &input) : "an object is expected";
    json_decref(body);
    gpu = input.drained.gpu;
    if (wrong) {
        http_reply_error(request, 400, "%s", wrong);
        return;
    }
    if (gpu != RECORD_NO_GPU && !core_gpu(daemon->core, gpu)) {
        http_reply_error(request, 404, "there is no GPU %" PRIu32 ": carma gpus lists them", gpu);
        return;
    }
    if (action->all)
        input.drained.uid = request->uid;
    else
        input.gpu = (struct record_gpu){.gpu = gpu};
    if (engine_input(daemon->engine, &input, &err) != 0) {
        http_reply_error(request, 409, "%s", err.text);
        return;
    }
    which = gpu == RECORD_NO_GPU ? xstrdup("the node") : xasprintf("GPU %" PRIu32, gpu);
    daemon_log("%s is %s by uid %u%s%s", which, action->done, (unsigned)request->uid, action->reason ? ": " : "",
               action->reason ? input.drained.why : "");
    reply = json_pack("{s:o, s:o}", action->done, gpu == RECORD_NO_GPU ? json_null() : json_integer(gpu), "closed",
                      closed_still(daemon->core, gpu));
    actions_reply_once_stored(daemon, request, 200, reply,
                              "it takes effect once that works, unless carmad ends before");
    engine_turn(daemon->engine);
}

void gpu_close(struct daemon *daemon, struct http_request *request)
{
    if (!action_of(request->path))
        http_reply_error(request, 404, "there is no '%.60s'", request->path);
    else if (strcmp(request->method, "POST") != 0)
        http_reply_error(request, 405, "%s %s is not known: use POST", request->method, request->path);
    else
        admin_only(daemon, request, answer, "to open and to close GPUs");
}
