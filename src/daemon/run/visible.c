#include "daemon/run/visible.h"

#include <inttypes.h>
#include <string.h>

#include "base/strbuf.h"
#include "core/ledger.h"
#include "daemon/node/node.h"

static bool asks(const struct daemon *daemon, const struct job_spec *spec)
{
    return spec->visible_devices ? strcmp(spec->visible_devices, "index") == 0
                                 : daemon->config.visible_devices == VISIBLE_DEVICES_INDEX;
}

static enum uuids_why why_not(const struct daemon *daemon, const struct job_view *view, bool under_mps,
                              const char *mps_gpus, bool filtered)
{
    if (view->wants->external)
        return UUIDS_LEASE;
    for (uint32_t i = 0; i < view->placement_count; i++)
        if (core_gpu(daemon->core, view->placements[i].gpu)->instance)
            return UUIDS_INSTANCE;
    if (under_mps)
        return mps_gpus ? UUIDS_NOT_ASKED : UUIDS_UNKNOWN_SERVER;
    return filtered || !node_has_instances(daemon->node) ? UUIDS_NOT_ASKED : UUIDS_MIXED_NODE;
}

/* How many UUIDs stand before this one in the list; -1: it is not there. */
static int64_t place_in(const char *list, const char *uuid)
{
    size_t length = strlen(uuid);
    int64_t place = 0;

    for (const char *at = list; *at; at += strcspn(at, ","), at += *at == ',', place++)
        if (strcspn(at, ",") == length && strncmp(at, uuid, length) == 0)
            return place;
    return -1;
}

/* Among the job's own. */
static int64_t rank_of(const struct daemon *daemon, const struct job_view *view, uint32_t placement)
{
    int64_t index = node_index_of(daemon->node, view->placements[placement].gpu), rank = 0;

    for (uint32_t i = 0; i < view->placement_count; i++)
        if (node_index_of(daemon->node, view->placements[i].gpu) < index)
            rank++;
    return index < 0 ? -1 : rank;
}

char *visible_indices(const struct daemon *daemon, const struct job_view *view, const struct job_spec *spec,
                      bool under_mps, const char *mps_gpus, bool filtered, enum uuids_why *why)
{
    struct strbuf text = {0};

    *why = UUIDS_NOT_ASKED;
    if (!asks(daemon, spec) || (*why = why_not(daemon, view, under_mps, mps_gpus, filtered)) != UUIDS_NOT_ASKED)
        return NULL;
    if (spec->container && (under_mps || !filtered)) {
        *why = UUIDS_CONTAINER;
        return NULL;
    }
    for (uint32_t i = 0; i < view->placement_count; i++) {
        const struct gpu *gpu = core_gpu(daemon->core, view->placements[i].gpu);
        int64_t index = under_mps  ? place_in(mps_gpus, gpu->uuid)
                        : filtered ? rank_of(daemon, view, i)
                                   : node_index_of(daemon->node, view->placements[i].gpu);
        if (index < 0) {
            *why = UUIDS_NOT_READ;
            strbuf_release(&text);
            return NULL;
        }
        strbuf_printf(&text, "%s%" PRId64, i ? "," : "", index);
    }
    return strbuf_steal(&text);
}
