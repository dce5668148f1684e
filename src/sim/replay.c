#include "sim/replay.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "api/record_json.h"
#include "base/memory.h"
#include "core/core.h"

struct replay {
    struct core *core;
    struct record_list fresh; /* the open group's decisions */
    size_t compared;          /* of them */
    bool deciding;            /* the last record was a decision */
    uint64_t records;
    uint64_t decisions;
    struct strbuf difference;
};

struct replay *replay_new(void)
{
    struct replay *replay = xcalloc(1, sizeof *replay);

    replay->core = core_new();
    return replay;
}

void replay_free(struct replay *replay)
{
    if (!replay)
        return;
    core_free(replay->core);
    record_list_release(&replay->fresh);
    strbuf_release(&replay->difference);
    free(replay);
}

static void write_text(const struct record *record, struct strbuf *text)
{
    struct error err;

    if (!record)
        strbuf_puts(text, "nothing");
    else if (record_json_write(record, text, &err) != 0)
        strbuf_puts(text, err.text);
}

/* Members that an earlier carma did not store in the decision cannot differ. */
static void leave_unsaid(const struct record *stored, struct record *fresh)
{
    if (stored->type == RECORD_PLACED && fresh->type == RECORD_PLACED && stored->placed.share == SHARE_ANY)
        fresh->placed.share = SHARE_ANY;
}

/* Either may be NULL: there is none. */
static void compare(struct replay *replay, uint64_t seq, const struct record *stored, struct record *fresh)
{
    CLEANUP(strbuf_release) struct strbuf then = {0}, now = {0};

    if (stored && fresh)
        leave_unsaid(stored, fresh);
    write_text(stored, &then);
    write_text(fresh, &now);
    if (strcmp(then.text, now.text) == 0)
        replay->decisions++;
    else
        strbuf_printf(&replay->difference, "record %" PRIu64 " is decided otherwise\n  stored: %s\n  afresh: %s", seq,
                      then.text, now.text);
}

/* The stored decisions of the group are through: there must be no more afresh. */
static void close_group(struct replay *replay, uint64_t seq)
{
    if (replay->deciding && replay->compared < replay->fresh.count)
        compare(replay, seq, NULL, &replay->fresh.items[replay->compared]);
    replay->deciding = false;
}

static void take_decision(struct replay *replay, uint64_t seq, const struct record *record)
{
    struct record *fresh = NULL;

    if (!replay->deciding) {
        replay->deciding = true;
        replay->fresh.count = replay->compared = 0;
        core_decide(replay->core, record->at_ns, &replay->fresh);
    }
    if (replay->compared < replay->fresh.count)
        fresh = &replay->fresh.items[replay->compared++];
    compare(replay, seq, record, fresh);
}

int replay_record(struct replay *replay, uint64_t seq, const struct record *record, struct error *err)
{
    struct error inner;

    if (replay->difference.text)
        return 0; /* from there on, the state is another */
    replay->records++;
    if (record_is_decision(record->type)) {
        take_decision(replay, seq, record);
        return 0;
    }
    close_group(replay, seq);
    if (!replay->difference.text && core_apply(replay->core, record, &inner) != 0)
        return error_set(err, EPROTO, "record %" PRIu64 " (%s) does not apply: %s", seq, record_type_name(record->type),
                         inner.text);
    return 0;
}

void replay_finish(struct replay *replay)
{
    if (!replay->difference.text)
        close_group(replay, replay->records + 1);
}

const char *replay_difference(const struct replay *replay)
{
    return replay->difference.text;
}

uint64_t replay_records(const struct replay *replay)
{
    return replay->records;
}

uint64_t replay_decisions(const struct replay *replay)
{
    return replay->decisions;
}
