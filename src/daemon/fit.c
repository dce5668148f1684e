#include "daemon/fit.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/memory.h"
#include "base/text/gpu_list.h"
#include "core/gpus/suits.h"
#include "core/ledger.h"

#define NO_GPU(which) "exclude_gpu: there is no GPU " which " here: carma gpus lists them"

/* The most memory that this many GPUs of the node have; 0: fewer GPUs. */
static int64_t memory_of_gpus(const struct core *core, uint32_t wanted)
{
    int64_t most = 0;

    for (uint32_t i = 0; i < core_gpu_count(core); i++) {
        int64_t total = core_gpu(core, i)->total_bytes;
        uint32_t as_large = 0;
        for (uint32_t k = 0; k < core_gpu_count(core); k++)
            as_large += core_gpu(core, k)->total_bytes >= total;
        if (as_large >= wanted && total > most)
            most = total;
    }
    return most;
}

void fit_request(const struct core *core, struct record_submitted *wants)
{
    struct reason why;
    int64_t most;

    if ((wants->request_source != SOURCE_RECORDED && wants->request_source != SOURCE_ESTIMATED) ||
        core_could_ever_run(core, wants, &why))
        return;
    most = memory_of_gpus(core, wants->gpus);
    if (most > 0 && wants->request_bytes > most)
        wants->request_bytes = most;
}

static int exclude(const struct core *core, const struct gpu_list_item *item, uint64_t *excluded, struct error *err)
{
    uint32_t first = item->first, last = item->last, count = core_gpu_count(core);

    for (uint32_t i = 0; item->uuid && i <= count; i++)
        if (i == count || strcmp(core_gpu(core, i)->uuid, item->uuid) == 0) {
            first = last = i;
            break;
        }
    if (last >= count && item->uuid)
        return error_set(err, EINVAL, NO_GPU("%.60s"), item->uuid);
    if (last >= count)
        return error_set(err, EINVAL, NO_GPU("%" PRIu32), first >= count ? first : last);
    if (last >= GPU_EXCLUDED_MOST)
        return error_set(err, EINVAL, "exclude_gpu: GPU %" PRIu32 " cannot be excluded: only 0 to %d can", last,
                         GPU_EXCLUDED_MOST - 1);
    for (; first <= last; first++)
        *excluded |= UINT64_C(1) << first;
    return 0;
}

int fit_excluded(const struct core *core, const char *list, uint64_t *excluded, struct error *err)
{
    CLEANUP(free_ptr) char *copy = xstrdup(list ? list : "");
    char *rest = list ? copy : NULL;
    struct gpu_list_item item;
    int status;

    *excluded = 0;
    while ((status = gpu_list_next(&rest, &item, err)) > 0)
        if ((status = exclude(core, &item, excluded, err)))
            break;
    return status;
}
