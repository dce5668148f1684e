#include "gpu/mps/domain_internal.h"

#include <string.h>
#include <unistd.h>

#include "base/memory.h"

void mps_domain_remove_member(struct mps_domain *domain, uint32_t i)
{
    domain->member_count--;
    memmove(domain->members + i, domain->members + i + 1, (domain->member_count - i) * sizeof *domain->members);
    if (domain->member_count == 0)
        domain->since_ms = uv_now(domain->loop);
}

uid_t mps_domain_wanted_uid(const struct mps_domain *domain)
{
    if (domain->member_count == 0)
        return NO_UID;
    return domain->multiuser ? geteuid() : domain->members[0].uid;
}

bool mps_domain_all_wait(const struct mps_domain *domain)
{
    for (uint32_t i = 0; i < domain->member_count; i++)
        if (!domain->members[i].ready)
            return false;
    return true;
}

void mps_domain_tell_ready(struct mps_domain *domain, int status, const struct error *err)
{
    bool told = true;

    while (told && !domain->freed) {
        told = false;
        for (uint32_t i = 0; i < domain->member_count; i++) {
            struct member member = domain->members[i];
            bool other = !domain->multiuser && member.uid != mps_domain_wanted_uid(domain);
            if (!member.ready || (status == 0 && other))
                continue;
            domain->members[i].ready = NULL;
            if (status < 0)
                mps_domain_remove_member(domain, i);
            member.ready(member.user, member.job, status, err);
            told = true;
            break;
        }
    }
}

void mps_domain_join(struct mps_domain *domain, uint64_t job, uid_t uid, mps_domain_ready *ready, void *user)
{
    array_reserve(domain->members, domain->member_capacity, domain->member_count + 1);
    domain->members[domain->member_count++] = (struct member){.job = job, .uid = uid, .ready = ready, .user = user};
    mps_domain_again_in(domain, 0);
}

void mps_domain_leave(struct mps_domain *domain, uint64_t job)
{
    for (uint32_t i = 0; i < domain->member_count; i++) {
        if (domain->members[i].job != job)
            continue;
        mps_domain_remove_member(domain, i);
        mps_domain_look(domain);
        return;
    }
}

void mps_domain_terminate(struct mps_domain *domain, uint64_t job, mps_domain_is_meant *is_meant,
                          mps_domain_terminated *done, void *user)
{
    struct termination *termination = xcalloc(1, sizeof *termination), **at = &domain->terminations;

    termination->job = job;
    termination->is_meant = is_meant;
    termination->done = done;
    termination->user = user;
    while (*at)
        at = &(*at)->following;
    *at = termination;
    mps_domain_again_in(domain, 0);
}

void mps_domain_termination_done(struct mps_domain *domain)
{
    struct termination *termination = domain->terminations;

    domain->terminations = termination->following;
    if (termination->done && !domain->freed)
        termination->done(termination->user, termination->job);
    free(termination);
}

/* The clients, for the first termination. */
static void on_listed(void *user, int status, const char *answer, const struct error *err)
{
    struct mps_domain *domain = user;
    struct termination *termination = domain->terminations;
    struct mps_pids all = {0};
    struct error told = *err;

    if (status == 0)
        status = mps_read_clients(answer, &all, &told);
    termination->listed = true;
    for (uint32_t i = 0; status == 0 && i < all.count; i++)
        if (!termination->is_meant || termination->is_meant(termination->user, termination->job, all.items[i]))
            termination->clients.items[termination->clients.count++] = all.items[i];
    if (termination->job == 0)
        domain->spared = all.count - termination->clients.count;
    if (mps_domain_answered(domain, status, &told))
        mps_domain_step(domain);
}

static void on_terminated(void *user, int status, const char *answer, const struct error *err)
{
    struct mps_domain *domain = user;

    domain->call = NULL; /* for any result: it may have left by itself */
    mps_domain_step(domain);
}

bool mps_domain_terminate_some(struct mps_domain *domain)
{
    struct termination *termination;
    struct mps_command command;

    while ((termination = domain->terminations)) {
        bool possible = domain->answers && domain->server && !domain->freed;
        if (possible && !termination->listed) {
            mps_say_clients(domain->server, &command);
            mps_ask(domain, &command, on_listed);
            return true;
        }
        if (possible && termination->next < termination->clients.count) {
            mps_say_terminate(domain->server, termination->clients.items[termination->next++], &command);
            mps_ask(domain, &command, on_terminated);
            return true;
        }
        mps_domain_termination_done(domain);
    }
    return false;
}
