/* How this file works: common_wants_join() looks for equal wants in a hash table, by a key in which the bytes between
 * members and the workload are zero, and counts who uses them; common_wants_leave() frees them with the last. The
 * members are the rows of wants.def, so a new one counts as soon as it is there. */
#include "core/common_wants.h"

#include <string.h>

#include "base/hash.h"

struct common_wants {
    struct record_submitted wants; /* the key: bytes between its members are zero */
    uint32_t users;
    UT_hash_handle hh;
};

/* Member by member: the padding between them may hold anything. A text has nothing behind its end: who fills one in
 * begins with zeros. */
static void make_key(const struct record_submitted *wants, struct record_submitted *key)
{
    memset(key, 0, sizeof *key);
#define WANT(type, member, kind, from) key->member = wants->member;
#define WORDS(member, size)            memcpy(key->member, wants->member, size);
#include "core/wants.def"
}

const struct record_submitted *common_wants_join(struct common_wants **all, const struct record_submitted *wants)
{
    struct common_wants *found;
    struct record_submitted key;

    make_key(wants, &key);
    HASH_FIND(hh, *all, &key, sizeof key, found);
    if (!found) {
        found = xcalloc(1, sizeof *found);
        memcpy(&found->wants, &key, sizeof found->wants);
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
