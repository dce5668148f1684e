#include "daemon/view/access.h"

#include <errno.h>
#include <grp.h>
#include <string.h>
#include <unistd.h>

#include "base/trust/account.h"
#include "base/memory.h"
#include "base/nodetime.h"
#include "base/units.h"
#include "daemon/log.h"

#define VERDICT_LIFE_NS (10 * NS_PER_SEC)
#define LINE_MAX_BYTES  (1 << 20) /* of a group with very many members */

struct verdict {
    uid_t uid;
    bool member;
    int64_t until_ns; /* wall time */
};

struct question {
    uid_t uid;
    void (*answer)(int status, void *user);
    void *user;
    struct question *next;
};

struct access {
    uv_loop_t *loop;
    struct verdict *verdicts; /* some of them stale */
    size_t verdict_count, verdict_capacity;
    struct question *questions; /* in the order of arrival */
    bool closing;
    /* One lookup at a time: a slow directory service gets no more than one thread of the pool. */
    uv_work_t work;
    bool looking;
    char *group; /* a copy, since the lookup may outlive the configuration */
    uid_t asked;
    bool known;
    bool member;
    bool told; /* that the group does not exist */
};

static bool is_master(uid_t uid)
{
    return uid == 0 || uid == geteuid();
}

enum access_view access_view_of(uid_t caller, uid_t owner)
{
    return caller == owner || is_master(caller) ? ACCESS_ALL : ACCESS_ENTRY;
}

/* ---- On a thread of the pool ---- */

static bool find_group(const char *name, gid_t *gid)
{
    CLEANUP(free_ptr) char *buffer = NULL;
    struct group entry, *found = NULL;
    int code = ERANGE;

    for (size_t size = 4096; code == ERANGE && size <= LINE_MAX_BYTES; size *= 4) {
        buffer = xrealloc(buffer, size, 1);
        code = getgrnam_r(name, &entry, buffer, size, &found);
    }
    if (code || !found)
        return false;
    *gid = found->gr_gid;
    return true;
}

static bool is_member(uid_t uid, gid_t wanted)
{
    CLEANUP(account_release) struct account account;

    if (account_look_up(uid, &account) == 0)
        account.group_count = account_groups(account.name, account.gid, &account.groups);
    for (int i = 0; i < account.group_count; i++)
        if (account.groups[i] == wanted)
            return true;
    return false;
}

static void look_up(uv_work_t *work)
{
    struct access *access = work->data;
    gid_t gid;

    access->known = find_group(access->group, &gid);
    access->member = access->known && is_member(access->asked, gid);
}

/* ---- On the loop ---- */

static const struct verdict *find_verdict(struct access *access, uid_t uid)
{
    int64_t now_ns = nodetime_monotonic_wall_ns();
    size_t kept = 0;

    for (size_t i = 0; i < access->verdict_count; i++)
        if (access->verdicts[i].until_ns > now_ns)
            access->verdicts[kept++] = access->verdicts[i];
    access->verdict_count = kept;
    for (size_t i = 0; i < kept; i++)
        if (access->verdicts[i].uid == uid)
            return &access->verdicts[i];
    return NULL;
}

static void answer_all_of(struct access *access, uid_t uid, int status)
{
    for (struct question **at = &access->questions; *at;) {
        struct question *question = *at;

        if (question->uid != uid) {
            at = &question->next;
            continue;
        }
        *at = question->next;
        question->answer(status, question->user);
        free(question);
    }
}

static void drop(struct access *access)
{
    while (access->questions)
        answer_all_of(access, access->questions->uid, -ESHUTDOWN);
    free(access->verdicts);
    free(access->group);
    free(access);
}

static void look_up_next(struct access *access);

static void on_looked_up(uv_work_t *work, int canceled)
{
    struct access *access = work->data;

    (void)canceled; /* nobody does */
    access->looking = false;
    if (access->closing) {
        drop(access);
        return;
    }
    if (!access->known && !access->told)
        daemon_log("admin_group '%s': there is no such group, so it has no members", access->group);
    access->told = !access->known;
    array_reserve(access->verdicts, access->verdict_capacity, access->verdict_count + 1);
    access->verdicts[access->verdict_count++] =
        (struct verdict){access->asked, access->member, nodetime_monotonic_wall_ns() + VERDICT_LIFE_NS};
    answer_all_of(access, access->asked, access->member ? 0 : -EPERM);
    look_up_next(access);
}

static void look_up_next(struct access *access)
{
    if (access->looking || !access->questions)
        return;
    access->looking = true;
    access->asked = access->questions->uid;
    uv_queue_work(access->loop, &access->work, look_up, on_looked_up);
}

void access_ask(struct access *access, uid_t caller, uid_t owner, void (*answer)(int status, void *user), void *user)
{
    const struct verdict *verdict;
    struct question *question, **at = &access->questions;

    if (caller == owner || is_master(caller)) {
        answer(0, user);
        return;
    }
    verdict = access->group ? find_verdict(access, caller) : NULL;
    if (verdict || !access->group) {
        answer(verdict && verdict->member ? 0 : -EPERM, user);
        return;
    }
    question = xmalloc(sizeof *question);
    *question = (struct question){.uid = caller, .answer = answer, .user = user};
    while (*at)
        at = &(*at)->next;
    *at = question;
    look_up_next(access);
}

struct access *access_new(uv_loop_t *loop, const char *admin_group)
{
    struct access *access = xcalloc(1, sizeof *access);

    access->loop = loop;
    access->work.data = access;
    access->group = admin_group ? xstrdup(admin_group) : NULL;
    return access;
}

void access_free(struct access *access)
{
    if (!access)
        return;
    access->closing = true;
    if (!access->looking)
        drop(access);
}
