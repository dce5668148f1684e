#include "vnode/mps_domain.h"

#include <errno.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "vnode/attach.h"
#include "vnode/domain.h"

#define INITIALIZING_MS 50  /* a server needs a moment */
#define RECOVERY_MS     300 /* and so it does after the last client that failed has gone */

#define MAX_CLIENTS_REACHED 808 /* CUDA_ERROR_MPS_MAX_CLIENTS_REACHED */

int mps_domain_open(struct mps_domain *domain, const char *pipe_directory, struct error *err)
{
    int rc;

    *domain = (struct mps_domain){.thread_percentage = 100, .node = {.fd = -1}};
    rc = node_open(&domain->node, NULL, err);
    if (rc < 0)
        return rc;
    domain->identity = attach_mps_domain(pipe_directory);
    domain->client_limit = domain->node.file->cuda_version >= 13010 ? 60 : 48;
    return 0;
}

void mps_domain_close(struct mps_domain *domain)
{
    mps_domain_end_server(domain);
    node_close(&domain->node);
}

/* ---- The server's process ---- */

static void be_server(uid_t uid) __attribute__((noreturn));
static void be_server(uid_t uid)
{
    prctl(PR_SET_NAME, "nvidia-cuda-mps-server");
    if (geteuid() == 0 && uid != 0 && (setgroups(0, NULL) < 0 || setresuid(uid, uid, uid) < 0))
        _exit(1);
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* after the change of user, which clears it */
    for (int fd = 3; fd < 64; fd++)   /* the daemon's socket and node: it must not hold their locks */
        close(fd);
    for (;;)
        pause();
}

int mps_domain_start_server(struct mps_domain *domain, uid_t uid, int64_t now_ms)
{
    pid_t pid;

    if (domain->server)
        return -EEXIST;
    if (geteuid() != 0 && uid != geteuid())
        return -EPERM;
    pid = fork();
    if (pid < 0)
        return -errno;
    if (pid == 0)
        be_server(uid);
    domain->server = pid;
    domain->server_uid = uid;
    domain->state = MPS_INITIALIZING;
    domain->since_ms = now_ms;
    return 0;
}

static void forget_server(struct mps_domain *domain)
{
    domain->server = 0;
    domain->state = MPS_NO_SERVER;
}

void mps_domain_end_server(struct mps_domain *domain)
{
    if (!domain->server)
        return;
    kill(domain->server, SIGKILL);
    waitpid(domain->server, NULL, 0);
    forget_server(domain);
}

/* ---- Clients ---- */

/* Errors that an MPS server gives to one client: no fault of anybody. */
static bool is_refusal(uint32_t fault)
{
    return fault == CUDA_FAULT_MPS_SERVER_NOT_READY || fault == MAX_CLIENTS_REACHED ||
           fault == CUDA_FAULT_MPS_CLIENT_TERMINATED;
}

static bool is_ours(const struct mps_domain *domain, const struct node_slot *slot)
{
    return slot->phase != NODE_SLOT_FREE && slot->mps && slot->mps_domain == domain->identity;
}

/* A client without a server: served, refused, or left waiting. Returns whether the slot was changed. */
static bool admit(struct mps_domain *domain, struct node_slot *slot, uint32_t *served)
{
    if (slot->fault || !domain->server || domain->state == MPS_INITIALIZING ||
        (!domain->multiuser && slot->uid != domain->server_uid))
        return false;
    if (domain->state == MPS_FAULT)
        slot->fault = CUDA_FAULT_MPS_SERVER_NOT_READY;
    else if (*served >= domain->client_limit)
        slot->fault = MAX_CLIENTS_REACHED;
    else
        slot->mps_server_pid = domain->server;
    *served += slot->mps_server_pid != 0;
    return true;
}

/* The server has died under its clients. */
static bool orphan(const struct mps_domain *domain, struct node_slot *slot)
{
    if (slot->mps_server_pid == 0 || slot->mps_server_pid == domain->server || slot->fault)
        return false;
    slot->fault = CUDA_FAULT_MPS_RPC_FAILURE;
    return true;
}

static void list(struct mps_domain *domain, const struct node_slot *slot)
{
    domain->clients[domain->client_count++] =
        (struct mps_client){.pid = slot->pid, .uid = slot->uid, .fault = slot->fault, .gpu = slot->uses[0].gpu,
                            .served = slot->mps_server_pid != 0 && slot->mps_server_pid == domain->server};
}

/* Brings the list up to date; what is due to clients is done on the way. */
static void look(struct mps_domain *domain)
{
    bool changed = false, poke = false;
    struct node_bank *bank;
    uint32_t served = 0;

    if (node_begin(&domain->node, &bank) < 0)
        return; /* somebody holds the lock for too long: the next look tells */
    domain->client_count = 0;
    for (uint32_t i = 0; i < bank->slot_high; i++)
        served += is_ours(domain, &bank->slots[i]) && domain->server && bank->slots[i].mps_server_pid == domain->server;
    for (uint32_t i = 0; i < bank->slot_high; i++) {
        struct node_slot *slot = &bank->slots[i];
        if (!is_ours(domain, slot))
            continue;
        changed |= slot->mps_server_pid ? orphan(domain, slot) : admit(domain, slot, &served);
        poke |= slot->fault != 0;
        list(domain, slot);
    }
    if (!changed) {
        node_abandon(&domain->node);
        return;
    }
    node_commit(&domain->node);
    if (poke)
        node_poke(&domain->node);
}

bool mps_domain_terminate(struct mps_domain *domain, pid_t client)
{
    struct node_bank *bank;
    bool found = false;

    if (node_begin(&domain->node, &bank) < 0)
        return false;
    for (uint32_t i = 0; i < bank->slot_high; i++) {
        struct node_slot *slot = &bank->slots[i];
        if (!is_ours(domain, slot) || slot->pid != client || slot->mps_server_pid != domain->server)
            continue;
        slot->fault = CUDA_FAULT_MPS_CLIENT_TERMINATED;
        found = true;
    }
    node_commit(&domain->node);
    node_poke(&domain->node);
    return found;
}

/* ---- Time ---- */

static uint32_t count_clients(const struct mps_domain *domain, bool failed)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < domain->client_count; i++) {
        const struct mps_client *client = &domain->clients[i];
        count += client->served && (!failed || (client->fault && !is_refusal(client->fault)));
    }
    return count;
}

/* The first that waits for a server of its own user. */
static const struct mps_client *waiting(const struct mps_domain *domain)
{
    for (uint32_t i = 0; i < domain->client_count; i++)
        if (!domain->clients[i].served && !domain->clients[i].fault)
            return &domain->clients[i];
    return NULL;
}

void mps_domain_advance(struct mps_domain *domain, int64_t now_ms)
{
    const struct mps_client *next;

    if (domain->server && waitpid(domain->server, NULL, WNOHANG) == domain->server)
        forget_server(domain);
    if (domain->state == MPS_INITIALIZING && now_ms - domain->since_ms >= INITIALIZING_MS)
        domain->state = MPS_ACTIVE;
    look(domain);
    if (domain->state != MPS_NO_SERVER && count_clients(domain, true)) {
        domain->state = MPS_FAULT;
        domain->since_ms = now_ms;
    } else if (domain->state == MPS_FAULT && now_ms - domain->since_ms >= RECOVERY_MS) {
        domain->state = MPS_ACTIVE;
    }
    next = waiting(domain);
    if (!next)
        return;
    if (domain->server && domain->state == MPS_ACTIVE && !domain->multiuser && next->uid != domain->server_uid &&
        count_clients(domain, false) == 0)
        mps_domain_end_server(domain);
    if (!domain->server)
        mps_domain_start_server(domain, domain->multiuser ? geteuid() : next->uid, now_ms);
}
