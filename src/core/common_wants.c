/* How this file works: common_wants_join() looks for equal wants in a hash table, by a key in which the bytes between
 * members and the workload are zero, and counts who uses them; common_wants_leave() frees them with the last. The
 * members are those of record_fields, so a new row of wants.def counts as soon as it is there. */
#include "core/common_wants.h"

#include <string.h>

#include "base/hash.h"

struct common_wants {
    struct record_submitted wants; /* the key: bytes between its members are zero */
    uint32_t users;
    UT_hash_handle hh;
};

static size_t size_of(const struct record_field *field)
{
    if (field->kind == FIELD_TEXT)
        return field->size;
    if (field->kind == FIELD_BOOL)
        return sizeof(bool);
    return field->kind == FIELD_I64 || field->kind == FIELD_U64 ? sizeof(int64_t) : sizeof(int32_t);
}

/* Member by member: the padding between them may hold anything. A text has nothing behind its end: who fills one in
 * begins with zeros. */
static void make_key(const struct record_submitted *wants, struct record *key)
{
    const struct record from = {.submitted = *wants};

    memset(key, 0, sizeof *key);
    for (const struct record_field *field = record_fields; field < record_fields + record_field_count; field++)
        if (field->type == RECORD_SUBMITTED && field->offset != offsetof(struct record, submitted.workload))
            memcpy((char *)key + field->offset, (const char *)&from + field->offset, size_of(field));
}

const struct record_submitted *common_wants_join(struct common_wants **all, const struct record_submitted *wants)
{
    struct common_wants *found;
    struct record key;

    make_key(wants, &key);
    HASH_FIND(hh, *all, &key.submitted, sizeof key.submitted, found);
    if (!found) {
        found = xcalloc(1, sizeof *found);
        memcpy(&found->wants, &key.submitted, sizeof found->wants);
        HASH_ADD(hh, *all, wants, sizeof found->wants, found);
    }
    found->users++;
    return &found->wants;
}

void common_wants_leave(struct common_wants **all, const struct record_submitted *wants)
{
    struct common_wants *common = (struct common_wants *)wants; /* its first member */

    if (!common || --common->users > 0)
        return;
    HASH_DEL(*all, common);
    free(common);
}
