/* What there is to say of a GPU that takes jobs all the same, or some: programs do not start there
 * (core/gpus/closing.h), or another daemon says that it is its own (claim.h). */
#include <errno.h>
#include <inttypes.h>

#include "base/nodetime.h"
#include "base/units.h"
#include "core/gpus/closing.h"
#include "daemon/log.h"
#include "daemon/node/claim.h"
#include "daemon/node/node_internal.h"
#include "daemon/view/owners.h"

static char *closed_text(const struct node *node, const struct gpu *gpu)
{
    const struct record_closing *closing = &gpu->closing;
    const char *user = closing->uid == CLOSING_EVERYBODY ? NULL : owners_name(node->daemon->owners, closing->uid);
    int64_t left_ns = closing->until_ns - nodetime_now_ns();
    char left[UNITS_TEXT];

    if (!closing->until_ns)
        return NULL;
    return xasprintf(
        "programs of %d workloads in a row did not start there, so no job%s%s is placed there for %s ('carma "
        "admin gpu open %" PRIu32 "' opens it)",
        CLOSING_STARTS, user ? " of " : "", user ? user : "", format_duration(left_ns > 0 ? left_ns : 0, left),
        gpu->number);
}

static char *rival_text(const struct node *node, const struct node_gpu *entry)
{
    const struct claim_holder *rival = &entry->rival;
    CLEANUP(free_ptr) char *process = rival->pid ? xasprintf("process %d", (int)rival->pid) : xstrdup("a process");

    if (entry->claim >= 0 || !entry->has_rival)
        return NULL;
    return xasprintf("%s of %s manages it, too: both give its memory to jobs, so stop one of them", process,
                     owners_name(node->daemon->owners, rival->uid));
}

json_t *node_notes_to_json(const struct node *node, const struct node_gpu *entry, const struct gpu *gpu)
{
    CLEANUP(free_ptr) char *closed = closed_text(node, gpu), *rival = entry ? rival_text(node, entry) : NULL;
    json_t *notes = json_array();

    if (closed)
        json_array_append_new(notes, json_string(closed));
    if (rival)
        json_array_append_new(notes, json_string(rival));
    return notes;
}

/* Its own, as soon as no other's. */
static void claim(const struct node *node, struct node_gpu *entry)
{
    CLEANUP(free_ptr) char *text = NULL;

    if (entry->claim >= 0)
        return;
    entry->claim = claim_gpu(entry->uuid);
    if (entry->claim == -EADDRINUSE && !entry->has_rival &&
        claim_holder_of(entry->uuid, entry->reading.minor, &entry->rival)) {
        entry->has_rival = true;
        text = rival_text(node, entry);
        daemon_log("GPU %" PRIu32 " (%s): %s", entry->number, entry->uuid, text);
    } else if (entry->claim >= 0 && entry->has_rival) {
        entry->has_rival = false;
        daemon_log("GPU %" PRIu32 " (%s): no other carmad manages it now", entry->number, entry->uuid);
    }
}

static void tell_closed(const struct node *node, struct node_gpu *entry)
{
    const struct gpu *gpu = core_gpu(node->daemon->core, entry->number);
    CLEANUP(free_ptr) char *text = closed_text(node, gpu);

    if (entry->told.closed_until_ns == gpu->closing.until_ns)
        return;
    entry->told.closed_until_ns = gpu->closing.until_ns;
    daemon_log("GPU %" PRIu32 " (%s): %s", gpu->number, gpu->uuid, text ? text : "jobs are placed there again");
}

void node_notes_tell(const struct node *node, struct node_gpu *entry)
{
    if (entry->number == NODE_NO_NUMBER)
        return;
    claim(node, entry);
    tell_closed(node, entry);
}
