#include "daemon/view/owners.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>
#include <utlist.h>

#include "base/trust/account.h"
#include "base/hash.h"
#include "base/nodetime.h"
#include "base/units.h"
#include "daemon/log.h"

#define NAMES_MAX    256
#define NAME_LIFE_NS (600 * NS_PER_SEC)

struct name {
    uid_t uid;
    char *text;       /* owned; the number until it is known */
    int64_t gid;      /* as in struct owner */
    int64_t until_ns; /* monotonic wall time; 0: it is to be looked up */
    UT_hash_handle hh;
};

struct asker {
    uid_t uid;
    void (*answer)(bool stopping, void *user);
    void *user;
    struct asker *next;
};

struct owners {
    uv_loop_t *loop;
    struct name *names;   /* the oldest first */
    struct asker *askers; /* in the order of arrival */
    bool closing;
    /* One lookup at a time: a slow directory service gets no more than one thread of the pool. */
    uv_work_t work;
    bool looking;
    uid_t asked;
    struct owner found;
};

/* ---- On any thread ---- */

int owner_look_up(uid_t uid, struct owner *owner, struct error *err)
{
    CLEANUP(account_release) struct account account;
    int code = account_look_up(uid, &account);

    if (code < 0 && code != -ENOENT)
        return error_set(err, code, "the user database cannot look up uid %u: %s", (unsigned)uid, strerror(-code));
    *owner = (struct owner){.user = code == 0 ? xstrdup(account.name) : xasprintf("%u", (unsigned)uid),
                            .gid = code == 0 ? (int64_t)account.gid : OWNER_NO_GID};
    return 0;
}

static void look_up(uv_work_t *work)
{
    struct owners *owners = work->data;
    struct error err;

    owners->found.user = NULL;
    owner_look_up(owners->asked, &owners->found, &err);
}

/* ---- On the loop ---- */

static void forget(struct owners *owners, struct name *name)
{
    HASH_DEL(owners->names, name);
    free(name->text);
    free(name);
}

static struct name *find(const struct owners *owners, uid_t uid)
{
    struct name *name;

    HASH_FIND(hh, owners->names, &uid, sizeof uid, name);
    return name;
}

/* For a while, also that nothing could be found: then the former answer stays. */
static void keep(struct name *name, const struct owner *found)
{
    name->until_ns = nodetime_monotonic_wall_ns() + NAME_LIFE_NS;
    if (!found->user)
        return;
    free(name->text);
    name->text = xstrdup(found->user);
    name->gid = found->gid;
}

static void answer_all_of(struct owners *owners, uid_t uid)
{
    struct asker *asker, *next;

    LL_FOREACH_SAFE(owners->askers, asker, next)
    {
        if (asker->uid != uid)
            continue;
        LL_DELETE(owners->askers, asker);
        asker->answer(owners->closing, asker->user);
        free(asker);
    }
}

static void drop(struct owners *owners)
{
    struct name *name, *next;

    while (owners->askers)
        answer_all_of(owners, owners->askers->uid);
    HASH_ITER (hh, owners->names, name, next)
        forget(owners, name);
    free(owners);
}

static void look_up_next(struct owners *owners);

static void on_looked_up(uv_work_t *work, int canceled)
{
    struct owners *owners = work->data;
    struct name *name = find(owners, owners->asked);

    (void)canceled; /* nobody does */
    owners->looking = false;
    if (name)
        keep(name, &owners->found);
    free_ptr(&owners->found.user);
    if (owners->closing) {
        drop(owners);
        return;
    }
    answer_all_of(owners, owners->asked);
    look_up_next(owners);
}

/* Somebody waits for the first of those that ask; its name may have been forgotten meanwhile. */
static void look_up_next(struct owners *owners)
{
    const struct name *name = owners->names;

    while (name && name->until_ns)
        name = name->hh.next;
    if (owners->looking || (!name && !owners->askers))
        return;
    owners->looking = true;
    owners->asked = owners->askers ? owners->askers->uid : name->uid;
    uv_queue_work(owners->loop, &owners->work, look_up, on_looked_up);
}

static struct name *find_or_add(struct owners *owners, uid_t uid)
{
    struct name *name = find(owners, uid);

    if (name)
        return name;
    if (HASH_COUNT(owners->names) >= NAMES_MAX)
        forget(owners, owners->names);
    name = xmalloc(sizeof *name);
    *name = (struct name){.uid = uid, .text = xasprintf("%u", (unsigned)uid), .gid = OWNER_UNKNOWN};
    HASH_ADD(hh, owners->names, uid, sizeof name->uid, name);
    return name;
}

const char *owners_name(struct owners *owners, uid_t uid)
{
    struct name *name = find_or_add(owners, uid);

    if (name->until_ns < nodetime_monotonic_wall_ns())
        name->until_ns = 0;
    look_up_next(owners);
    return name->text;
}

void owners_ask(struct owners *owners, uid_t uid, void (*answer)(bool stopping, void *user), void *user)
{
    struct asker *asker;

    owners_name(owners, uid);
    if (find(owners, uid)->until_ns) {
        answer(false, user);
        return;
    }
    asker = xmalloc(sizeof *asker);
    *asker = (struct asker){.uid = uid, .answer = answer, .user = user};
    LL_APPEND(owners->askers, asker);
    look_up_next(owners);
}

bool owners_find(const struct owners *owners, uid_t uid, struct owner *owner)
{
    const struct name *name = find(owners, uid);

    if (!name || name->gid < 0 || name->until_ns < nodetime_monotonic_wall_ns())
        return false;
    *owner = (struct owner){.user = xstrdup(name->text), .gid = name->gid};
    return true;
}

void owners_keep(struct owners *owners, uid_t uid, const struct owner *found)
{
    keep(find_or_add(owners, uid), found);
}

struct owners *owners_new(uv_loop_t *loop)
{
    struct owners *owners = xcalloc(1, sizeof *owners);

    owners->loop = loop;
    owners->work.data = owners;
    return owners;
}

void owners_free(struct owners *owners)
{
    if (!owners)
        return;
    owners->closing = true;
    if (!owners->looking)
        drop(owners);
}
