#include "daemon/request/gpu_open.h"

#include <inttypes.h>

#include "base/json/json_read.h"
#include "base/nodetime.h"
#include "core/core.h"
#include "daemon/daemon.h"
#include "daemon/engine/engine.h"
#include "daemon/log.h"
#include "daemon/request/actions.h"
#include "daemon/request/admin_only.h"
#include "http/http.h"

static void answer(struct daemon *daemon, struct http_request *request)
{
    static const struct json_bounds bounds = {.values = 3, .depth = 1, .bytes = 64};
    struct record input = {.type = RECORD_GPU_OPENED, .at_ns = nodetime_now_ns()};
    json_t *body;
    json_int_t gpu;
    struct error err;

    json_read(request->body, request->body_length, JSON_REJECT_DUPLICATES, &bounds, &body, NULL);
    gpu = json_is_integer(json_object_get(body, "gpu")) ? json_integer_value(json_object_get(body, "gpu")) : -1;
    input.gpu.gpu = (uint32_t)gpu;
    if (gpu < 0 || gpu > UINT32_MAX || json_object_size(body) != 1)
        http_reply_error(request, 400, "{\"gpu\": NUMBER} is expected");
    else if (!core_gpu(daemon->core, input.gpu.gpu))
        http_reply_error(request, 404, "there is no GPU %" PRIu32 ": carma gpus lists them", input.gpu.gpu);
    else if (engine_input(daemon->engine, &input, &err) != 0)
        http_reply_error(request, 409, "%s", err.text);
    else {
        daemon_log("GPU %" PRIu32 " is open: by uid %u", input.gpu.gpu, (unsigned)request->uid);
        actions_reply_once_stored(daemon, request, 200, json_pack("{s:I}", "opened", gpu),
                                  "it takes effect once that works, unless carmad ends before");
        engine_turn(daemon->engine);
    }
    json_decref(body);
}

void gpu_open(struct daemon *daemon, struct http_request *request)
{
    admin_only(daemon, request, answer, "to open a GPU");
}
