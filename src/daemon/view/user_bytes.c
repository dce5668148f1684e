#include "daemon/view/user_bytes.h"

#include "base/hash.h"
#include "base/memory.h"

struct bytes_of {
    uint32_t uid;
    int64_t bytes;
    UT_hash_handle hh;
};

void user_bytes_add(struct user_bytes *sums, uint32_t uid, int64_t bytes)
{
    struct bytes_of *user;

    HASH_FIND(hh, sums->users, &uid, sizeof uid, user);
    if (!user && bytes) {
        user = xcalloc(1, sizeof *user);
        user->uid = uid;
        HASH_ADD(hh, sums->users, uid, sizeof user->uid, user);
    }
    if (!user || (user->bytes += bytes))
        return;
    HASH_DEL(sums->users, user);
    free(user);
}

int64_t user_bytes_of(const struct user_bytes *sums, uint32_t uid)
{
    const struct bytes_of *user;

    HASH_FIND(hh, sums->users, &uid, sizeof uid, user);
    return user ? user->bytes : 0;
}

void user_bytes_charge(struct user_bytes *sums, struct charge *charge, uint32_t uid, uint64_t bytes)
{
    if (charge->bytes)
        return;
    *charge = (struct charge){.uid = uid, .bytes = bytes < UINT32_MAX ? (uint32_t)bytes : UINT32_MAX};
    user_bytes_add(sums, uid, charge->bytes);
}

void user_bytes_discharge(struct user_bytes *sums, const struct charge *charge)
{
    user_bytes_add(sums, charge->uid, -(int64_t)charge->bytes);
}
