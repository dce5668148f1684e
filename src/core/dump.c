/* How this file works: the whole state as text, for comparisons. A snapshot is taken and printed record by record, and
 * behind it what follows from the state and is kept beside it. A member of a record shows here by itself. Which jobs
 * may shrink is left out: a decision looks at them, and leaves no record where nothing shrinks. */
#include <inttypes.h>

#include "base/strbuf.h"
#include "core/guess/program_history.h"
#include "core/learn/learn.h"
#include "core/snapshot.h"
#include "core/state.h"

static void dump_array(struct strbuf *text, const uint32_t *items, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        strbuf_printf(text, "%s%" PRIu32, i ? "," : "", items[i]);
}

static void dump_field(struct strbuf *text, const struct record *record, const struct record_field *field)
{
    const void *at = (const char *)record + field->offset;

    strbuf_printf(text, " %s=", field->name);
    switch (field->kind) {
    case FIELD_BOOL:
        strbuf_printf(text, "%d", *(const bool *)at);
        break;
    case FIELD_U32:
        strbuf_printf(text, "%" PRIu32, *(const uint32_t *)at);
        break;
    case FIELD_I32:
        strbuf_printf(text, "%" PRId32, *(const int32_t *)at);
        break;
    case FIELD_I64:
        strbuf_printf(text, "%" PRId64, *(const int64_t *)at);
        break;
    case FIELD_U64:
        strbuf_printf(text, "%" PRIu64, *(const uint64_t *)at);
        break;
    case FIELD_TEXT:
        strbuf_puts(text, at);
        break;
    case FIELD_U32_ARRAY:
        dump_array(text, at, *(const uint32_t *)((const char *)record + field[-1].offset));
        break;
    }
}

static void dump_record(struct strbuf *text, const struct record *record)
{
    strbuf_printf(text, "%s %" PRIu64, record_type_name(record->type), record->job);
    for (size_t i = 0; i < record_field_count; i++)
        if (record_fields[i].type == record->type)
            dump_field(text, record, &record_fields[i]);
    strbuf_puts(text, "\n");
}

static void dump_user(struct strbuf *text, const struct user *user)
{
    if (user->use || user->held_permille || user->kept_ns)
        strbuf_printf(text, "user %" PRIu32 " use=%" PRId64 " since=%" PRId64 " held=%" PRId64 " kept=%" PRId64 "\n",
                      user->uid, user->use, user->use_ns, user->held_permille, user->kept_ns);
    if (user->own || user->unfinished)
        strbuf_printf(text, "user %" PRIu32 " likely=%" PRId64 " careful=%" PRId64 "\n", user->uid, user->likely_bytes,
                      user->careful_bytes);
    if (user->unfinished)
        strbuf_printf(
            text, "user %" PRIu32 " unfinished=%" PRIu32 " running=%" PRIu32 " gpus=%" PRIu32 " memory=%" PRIu64 "\n",
            user->uid, user->unfinished, user->running, user->gpus, user->memory_bytes);
    for (const struct profile *profile = user->profiles; profile; profile = profile->hh.next)
        if (profile->program)
            strbuf_printf(text, "program of %" PRIu32 "/%s %" PRIu32 "/%" PRIu32 " likely=%" PRId64 "\n", user->uid,
                          profile->workload, profile->program->completed, profile->program->profiles,
                          profile->program->likely_bytes);
}

char *core_dump(const struct core *core)
{
    struct record_list records = {0};
    struct strbuf text = {0};

    core_snapshot(core, 0, &records);
    for (size_t i = 0; i < records.count; i++)
        if (records.items[i].type != RECORD_STATE_QUEUED ||
            records.items[i].state_queued.queue != RECORD_QUEUE_SHRINKING)
            dump_record(&text, &records.items[i]);
    for (const struct user *user = core->users; user; user = user->hh.next)
        dump_user(&text, user);
    record_list_release(&records);
    return strbuf_steal(&text);
}
