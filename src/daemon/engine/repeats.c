#include "daemon/engine/repeats.h"

#include <stdio.h>
#include <string.h>
#include <utlist.h>
#include "base/hash.h"

#define KEY_TEXT (REPEATS_ID_MAX + 16)

struct repeat {
    char key[KEY_TEXT];           /* "UID:ID" */
    struct store_request request; /* its id lies in key */
    struct repeat *next, *prev;   /* of the same user, the oldest first */
    UT_hash_handle hh;
};

struct requester {
    uint32_t uid;
    struct repeat *first;
    size_t count;
    UT_hash_handle hh;
};

struct repeats {
    struct repeat *all;
    struct requester *requesters;
};

static void make_key(char key[static KEY_TEXT], uint32_t uid, const char *id)
{
    snprintf(key, KEY_TEXT, "%u:%s", (unsigned)uid, id);
}

bool repeats_is_id(const char *text)
{
    size_t length = strlen(text);

    return length > 0 && length <= REPEATS_ID_MAX &&
           strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.") == length;
}

struct repeats *repeats_new(void)
{
    return xcalloc(1, sizeof(struct repeats));
}

static struct requester *find_requester(const struct repeats *repeats, uint32_t uid)
{
    struct requester *requester;

    HASH_FIND(hh, repeats->requesters, &uid, sizeof uid, requester);
    return requester;
}

static void drop(struct repeats *repeats, struct requester *requester, struct repeat *repeat)
{
    DL_DELETE(requester->first, repeat);
    HASH_DEL(repeats->all, repeat);
    free(repeat);
    if (--requester->count > 0)
        return;
    HASH_DEL(repeats->requesters, requester);
    free(requester);
}

static void drop_aged(struct repeats *repeats, int64_t now_s)
{
    struct requester *requester, *next;

    HASH_ITER (hh, repeats->requesters, requester, next) {
        size_t count = requester->count;

        while (count-- > 0 && requester->first->request.at_s < now_s - STORE_REQUEST_KEPT_S)
            drop(repeats, requester, requester->first);
    }
}

void repeats_add(struct repeats *repeats, const struct store_request *request)
{
    struct requester *requester;
    struct repeat *repeat = xcalloc(1, sizeof *repeat);

    repeats_drop(repeats, request->uid, request->id);
    drop_aged(repeats, store_request_now_s());
    requester = find_requester(repeats, request->uid);
    if (!requester) {
        requester = xcalloc(1, sizeof *requester);
        requester->uid = request->uid;
        HASH_ADD(hh, repeats->requesters, uid, sizeof requester->uid, requester);
    }
    make_key(repeat->key, request->uid, request->id);
    repeat->request = *request;
    repeat->request.id = strchr(repeat->key, ':') + 1;
    HASH_ADD_STR(repeats->all, key, repeat);
    DL_APPEND(requester->first, repeat);
    if (++requester->count > REPEATS_PER_USER)
        drop(repeats, requester, requester->first);
}

const struct store_request *repeats_find(struct repeats *repeats, uint32_t uid, const char *id)
{
    char key[KEY_TEXT];
    struct repeat *repeat;

    make_key(key, uid, id);
    HASH_FIND_STR(repeats->all, key, repeat);
    return repeat ? &repeat->request : NULL;
}

void repeats_drop(struct repeats *repeats, uint32_t uid, const char *id)
{
    char key[KEY_TEXT];
    struct repeat *repeat;

    make_key(key, uid, id);
    HASH_FIND_STR(repeats->all, key, repeat);
    if (repeat)
        drop(repeats, find_requester(repeats, uid), repeat);
}

void repeats_free(struct repeats *repeats)
{
    struct requester *requester, *next;

    if (!repeats)
        return;
    HASH_ITER (hh, repeats->requesters, requester, next) {
        for (size_t count = requester->count; count > 0; count--)
            drop(repeats, requester, requester->first);
    }
    free(repeats);
}
