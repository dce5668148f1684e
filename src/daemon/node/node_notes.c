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

static char *closed_text(const struct node *node, const struct gpu *gpu, uint32_t uid)
{
    const char *user = uid == CLOSING_EVERYBODY ? NULL : owners_name(node->daemon->owners, uid);
    int64_t left_ns = closing_until_ns(gpu, uid) - nodetime_now_ns();
    bool of_users = gpu->closing.count == CLOSING_USERS * CLOSING_NUMBERS;
    char left[UNITS_TEXT];

    return xasprintf(
        "programs of %d %s in a row did not start there, so no job%s%s is placed there for %s ('carma admin "
        "gpu open %" PRIu32 "' opens it)",
        of_users ? CLOSING_USERS : CLOSING_STARTS, of_users ? "users" : "workloads", user ? " of " : "",
        user ? user : "", format_duration(left_ns > 0 ? left_ns : 0, left), gpu->number);
}

/* Of everybody, or of each user to whom it is closed. */
static json_t *closed_to_json(const struct node *node, const struct gpu *gpu)
{
    bool all = closing_until_ns(gpu, CLOSING_EVERYBODY) != 0;
    json_t *notes = json_array();

    for (uint32_t i = 0; i < gpu->closing.count / CLOSING_NUMBERS && !(all && i > 0); i++) {
        uint32_t uid = all ? CLOSING_EVERYBODY : gpu->closing.users[i].uid;
        CLEANUP(free_ptr) char *text = closing_until_ns(gpu, uid) ? closed_text(node, gpu, uid) : NULL;
        if (text)
            json_array_append_new(notes, json_string(text));
    }
    return notes;
}

static char *rival_text(const struct node *node, const struct node_gpu *entry)
{
    const struct claim_holder *rival = &entry->rival;
    CLEANUP(free_ptr) char *process = rival->pid ? xasprintf("process %d", (int)rival->pid) : xstrdup("a process");

    if (entry->claim >= 0 || !entry->has_rival)
        return NULL;
    return xasprintf("%s of user %s manages it, too: both give its memory to jobs, so stop one of them", process,
                     owners_name(node->daemon->owners, rival->uid));
}

json_t *node_notes_to_json(const struct node *node, const struct node_gpu *entry, const struct gpu *gpu)
{
    CLEANUP(free_ptr) char *rival = entry ? rival_text(node, entry) : NULL;
    json_t *notes = closed_to_json(node, gpu);

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
    int64_t sum_ns = 0; /* another where it was closed to one more user, or opened to one */
    json_t *notes, *note;
    size_t i;

    for (i = 0; i < gpu->closing.count / CLOSING_NUMBERS; i++)
        sum_ns += closing_until_ns(gpu, gpu->closing.users[i].uid);
    if (entry->told.closed_sum_ns == sum_ns)
        return;
    entry->told.closed_sum_ns = sum_ns;
    notes = closed_to_json(node, gpu);
    json_array_foreach (notes, i, note)
        daemon_log("GPU %" PRIu32 " (%s): %s", gpu->number, gpu->uuid, json_string_value(note));
    if (!sum_ns)
        daemon_log("GPU %" PRIu32 " (%s): jobs are placed there again", gpu->number, gpu->uuid);
    json_decref(notes);
}

void node_notes_tell(const struct node *node, struct node_gpu *entry)
{
    if (entry->number == NODE_NO_NUMBER)
        return;
    claim(node, entry);
    tell_closed(node, entry);
}
