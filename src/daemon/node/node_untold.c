/* What NVML does not tell of the GPUs, and why: any of its calls may answer any error, at the start or later.
 *
 * - A GPU takes jobs while its memory, and whether it is in MIG mode, are known. A call that fails now and then is
 *   forgiven; then nothing is placed there until it answers again. Other unknown figures are named.
 * - A GPU that is known by its UUID keeps its number, whatever it answers: a new one has it as soon as it is known to
 * be no partitioned one. Until then it has a line without a number.
 * - A GPU that does not tell its UUID is one of those that the store knows and NVML does not show; of those that are
 * too many for that, each has a line that says so. */
#include <inttypes.h>
#include <string.h>

#include "base/strbuf.h"
#include "core/ledger.h"
#include "daemon/engine/engine.h"
#include "daemon/log.h"
#include "daemon/node/node_internal.h"

#define STEADY 3 /* readings */

void node_untold_begin(struct node *node)
{
    node->unnamed_count = 0;
    for (uint32_t i = 0; i < node->count; i++)
        node->gpus[i]->there = node->gpus[i]->seen = false;
}

void node_untold_unnamed(struct node *node, const struct gpu_reading *reading)
{
    if (node->unnamed_count < GPU_MAX_DEVICES)
        node->unnamed[node->unnamed_count++] = (struct node_unnamed){reading->index, reading->error};
}

void node_untold_take(struct node_gpu *entry, const struct gpu_reading *reading)
{
    bool partitioned = reading->kind == GPU_PARTITIONED;

    entry->seen = true;
    entry->there = reading->error == 0;
    entry->well = reading->error ? 0 : entry->well + 1;
    if (reading->error || entry->well >= STEADY)
        entry->error = reading->error;
    memcpy(entry->refused, reading->refused, sizeof entry->refused);
    entry->untold = entry->there && !partitioned && !gpu_reading_usable(reading) ? entry->untold + 1 : 0;
    if (entry->at_ns == 0) { /* all that is known of it */
        entry->reading = *reading;
        entry->reading.valid = 0;
    }
}

bool node_untold_is_forgiven(const struct node_gpu *entry)
{
    return entry->at_ns && entry->untold && entry->untold < STEADY;
}

/* A GPU that has failed has to answer for a while: there are calls of which only each second one fails. */
bool node_untold_is_open(const struct node_gpu *entry, const struct gpu_reading *reading)
{
    return gpu_reading_usable(reading) && entry->error == 0;
}

/* ---- In words ---- */

/* The place of this GPU among those that NVML does not show. */
static uint32_t absent_before(const struct node *node, uint32_t number)
{
    uint32_t absent = 0;

    for (uint32_t i = 0; i < number; i++) {
        const struct node_gpu *entry = node_gpu_numbered(node, i);
        absent += !core_gpu(node->daemon->core, i)->instance && !(entry && entry->seen);
    }
    return absent;
}

char *node_why_unnamed(const struct node_unnamed *unnamed)
{
    return xasprintf("NVML has a GPU at index %" PRIu32 " that does not tell its UUID: %s (%" PRId32 ")",
                     unnamed->index, gpu_error_text(unnamed->error), unnamed->error);
}

char *node_why_lost(const struct node *node, const struct node_gpu *entry, const struct gpu *gpu)
{
    if (gpu && !gpu->lost)
        return NULL;
    if (node->unread)
        return xstrdup(node->problem);
    if (!entry || !entry->seen) {
        uint32_t place = gpu && !gpu->instance ? absent_before(node, gpu->number) : node->unnamed_count;
        return place < node->unnamed_count ? node_why_unnamed(&node->unnamed[place])
                                           : xstrdup("NVML does not show it since carmad or the driver started");
    }
    if (entry->error)
        return xasprintf("NVML answers %s (%" PRId32 ")", gpu_error_text(entry->error), entry->error);
    if (entry->refused[GPU_REFUSED_MIG] && entry->reading.kind != GPU_PARTITIONED)
        return xasprintf("NVML does not tell whether it is in MIG mode: %s (%u)",
                         gpu_error_text(entry->refused[GPU_REFUSED_MIG]), entry->refused[GPU_REFUSED_MIG]);
    if (entry->refused[0])
        return xasprintf("NVML does not tell its memory: %s (%u)", gpu_error_text(entry->refused[0]),
                         entry->refused[0]);
    return !gpu ? NULL
                : xstrdup(entry->reading.kind == GPU_PARTITIONED ? "it is in MIG mode now" : "no reading has come");
}

/* "power: Not supported (3), energy: Not supported (3)"; "": all is told. Owned by the caller. */
static char *refused_text(const uint16_t refused[static GPU_REFUSED_COUNT])
{
    struct strbuf out = {0};

    strbuf_puts(&out, "");
    for (uint32_t i = 0; i < GPU_REFUSED_COUNT; i++)
        if (refused[i])
            strbuf_printf(&out, "%s%s: %s (%u)", out.length ? ", " : "", gpu_refused_name(i),
                          gpu_error_text(refused[i]), refused[i]);
    return strbuf_steal(&out);
}

json_t *node_untold_to_json(const struct node_gpu *entry, bool closed)
{
    CLEANUP(free_ptr) char *text = NULL;
    uint16_t others[GPU_REFUSED_COUNT] = {0};

    if (entry->seen && entry->there)
        memcpy(others, entry->refused, sizeof others);
    if (closed && entry->reading.kind != GPU_PARTITIONED) /* the reason says which of the two */
        others[others[GPU_REFUSED_MIG] ? GPU_REFUSED_MIG : 0] = 0;
    text = refused_text(others);
    return *text ? json_string(text) : json_null();
}

uint32_t node_lines_unnamed(const struct node *node, const struct node_unnamed **first)
{
    uint32_t absent = absent_before(node, core_gpu_count(node->daemon->core));
    uint32_t held = absent < node->unnamed_count ? absent : node->unnamed_count;

    *first = node->unnamed + held;
    return node->unread ? 0 : node->unnamed_count - held;
}

char *node_unnamed_key(const struct node_unnamed *unnamed)
{
    return xasprintf("(no UUID, NVML index %" PRIu32 ")", unnamed->index);
}

bool node_has_own_line(const struct node *node, const struct node_gpu *entry)
{
    for (uint32_t i = 0; i < node->count; i++)
        if (entry->reading.kind == GPU_PARTITIONED && node->gpus[i]->number != NODE_NO_NUMBER &&
            strcmp(node->gpus[i]->reading.parent, entry->uuid) == 0)
            return false; /* it is the heading of that instance */
    return entry->number == NODE_NO_NUMBER && (entry->seen || node->unread);
}

/* ---- In the log ---- */

void node_untold_report(struct node *node)
{
    const struct node_unnamed *unnamed;
    uint32_t count = node_lines_unnamed(node, &unnamed);

    for (uint32_t i = 0; i < node->count; i++) {
        struct node_gpu *entry = node->gpus[i];
        CLEANUP(free_ptr) char *text = refused_text(entry->refused);
        entry->told.refused_held =
            entry->there && strcmp(text, entry->told.refused) != 0 ? entry->told.refused_held + 1 : 0;
        if (entry->told.refused_held < STEADY)
            continue;
        if (*text)
            daemon_log("GPU %s: NVML does not tell %s", entry->uuid, text);
        else
            daemon_log("GPU %s: NVML tells all that it did not", entry->uuid);
        snprintf(entry->told.refused, sizeof entry->told.refused, "%s", text);
    }
    for (uint32_t i = 0; i < count && node->unnamed_told != count; i++) {
        CLEANUP(free_ptr) char *text = node_why_unnamed(&unnamed[i]);
        daemon_log("%s: nothing is placed there", text);
    }
    node->unnamed_told = count;
}
