#include "vnode/mps_daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/units.h"
#include "vnode/attach.h"
#include "vnode/domain.h"

#define INITIALIZING_MS 50   /* a server needs a moment */
#define RETRY_MS        1000 /* and more of one after a fault, once the last client that failed has gone */

#define MAX_CLIENTS_REACHED 808 /* CUDA_ERROR_MPS_MAX_CLIENTS_REACHED */

int mps_daemon_open(struct mps_daemon *daemon, const char *pipe_directory, struct error *err)
{
    int rc;

    *daemon = (struct mps_daemon){.thread_percentage = 100, .faults = -1, .node = {.fd = -1}};
    rc = node_open(&daemon->node, NULL, err);
    if (rc < 0)
        return rc;
    daemon->identity = attach_mps_domain(pipe_directory);
    daemon->client_limit = daemon->node.file->cuda_version >= 13010 ? 60 : 48;
    return 0;
}

void mps_daemon_close(struct mps_daemon *daemon)
{
    mps_daemon_end_server(daemon);
    node_close(&daemon->node);
}

/* ---- The server's process ---- */

/* As NVIDIA's, which has it open when it gives up its rights; -1: there is none. */
static int open_log(void)
{
    const char *directory = getenv("CUDA_MPS_LOG_DIRECTORY");
    CLEANUP(free_ptr) char *path = xasprintf("%s/server.log", directory ? directory : "");

    return directory ? open(path, O_WRONLY | O_APPEND | O_CLOEXEC) : -1;
}

static void write_line(int log, int32_t client, const char *what)
{
    struct timespec now;
    struct tm local;
    char at[32];

    clock_gettime(CLOCK_REALTIME, &now);
    strftime(at, sizeof at, "%Y-%m-%d %H:%M:%S", localtime_r(&now.tv_sec, &local));
    dprintf(log, "[%s.%03ld Server %5d] Client process %d %s\n", at, now.tv_nsec / NS_PER_MS, (int)getpid(), client,
            what);
}

static void be_server(uid_t uid, int faults, int log) __attribute__((noreturn));
static void be_server(uid_t uid, int faults, int log)
{
    siginfo_t heard;
    sigset_t told;

    sigemptyset(&told);
    sigaddset(&told, DOMAIN_FAULTED);
    sigaddset(&told, DOMAIN_REFUSED);
    sigprocmask(SIG_BLOCK, &told, NULL);
    prctl(PR_SET_NAME, "nvidia-cuda-mps-server");
    if (geteuid() == 0 && uid != 0 && (setgroups(0, NULL) < 0 || setresuid(uid, uid, uid) < 0))
        _exit(1);
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* after the change of user, which clears it */
    for (int fd = 3; fd < 64; fd++)   /* the daemon's socket and node: it must not hold their locks */
        if (fd != faults && fd != log)
            close(fd);
    for (;;) {
        if (sigwaitinfo(&told, &heard) < 0)
            continue;
        if (heard.si_signo == DOMAIN_REFUSED)
            write_line(log, heard.si_value.sival_int, "failed to allocate device memory: out of memory");
        else
            write_line(log, heard.si_value.sival_int, "encountered a fatal GPU error.");
        if (heard.si_signo == DOMAIN_FAULTED && write(faults, "f", 1) < 0)
            _exit(1);
    }
}

int mps_daemon_start_server(struct mps_daemon *daemon, uid_t uid, int64_t now_ms)
{
    CLEANUP(close_fd) int log = -1;
    int ends[2];
    pid_t pid;

    if (daemon->server)
        return -EEXIST;
    if (geteuid() != 0 && uid != geteuid())
        return -EPERM;
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
        return -errno;
    log = open_log();
    pid = fork();
    if (pid == 0)
        be_server(uid, ends[1], log);
    close(ends[1]);
    if (pid < 0) {
        close(ends[0]);
        return -EAGAIN;
    }
    daemon->faults = ends[0];
    daemon->server = pid;
    daemon->server_uid = uid;
    daemon->state = MPS_INITIALIZING;
    daemon->since_ms = now_ms;
    return 0;
}

static void forget_server(struct mps_daemon *daemon)
{
    close(daemon->faults);
    daemon->faults = -1;
    daemon->server = 0;
    daemon->state = MPS_NO_SERVER;
}

void mps_daemon_end_server(struct mps_daemon *daemon)
{
    if (!daemon->server)
        return;
    kill(daemon->server, SIGKILL);
    waitpid(daemon->server, NULL, 0);
    forget_server(daemon);
}

/* ---- Clients ---- */

/* Errors that an MPS server gives to one client: no fault of anybody. */
static bool is_refusal(uint32_t fault)
{
    return fault == CUDA_FAULT_MPS_SERVER_NOT_READY || fault == MAX_CLIENTS_REACHED ||
           fault == CUDA_FAULT_MPS_CLIENT_TERMINATED;
}

static bool is_ours(const struct mps_daemon *daemon, const struct node_slot *slot)
{
    return slot->phase != NODE_SLOT_FREE && slot->mps && slot->mps_domain == daemon->identity;
}

/* A client without a server: served, refused, or left waiting. Returns whether the slot was changed. */
static bool admit(struct mps_daemon *daemon, struct node_slot *slot, uint32_t *served)
{
    if (slot->fault || !daemon->server || daemon->state == MPS_INITIALIZING ||
        (!daemon->multiuser && slot->uid != daemon->server_uid))
        return false;
    if (daemon->state == MPS_FAULT)
        slot->fault = CUDA_FAULT_MPS_SERVER_NOT_READY;
    else if (*served >= daemon->client_limit)
        slot->fault = MAX_CLIENTS_REACHED;
    else
        slot->mps_server_pid = daemon->server;
    *served += slot->mps_server_pid != 0;
    return true;
}

/* The server has died under its clients. */
static bool orphan(const struct mps_daemon *daemon, struct node_slot *slot)
{
    if (slot->mps_server_pid == 0 || slot->mps_server_pid == daemon->server || slot->fault)
        return false;
    slot->fault = CUDA_FAULT_MPS_RPC_FAILURE;
    return true;
}

static void list(struct mps_daemon *daemon, const struct node_slot *slot)
{
    daemon->clients[daemon->client_count++] =
        (struct mps_client){.pid = slot->pid,
                            .uid = slot->uid,
                            .fault = slot->fault,
                            .gpu = slot->uses[0].gpu,
                            .served = slot->mps_server_pid != 0 && slot->mps_server_pid == daemon->server};
}

/* Brings the list up to date, and sends clients the answers that they wait for. */
static void look(struct mps_daemon *daemon)
{
    bool changed = false, wake = false;
    struct node_bank *bank;
    uint32_t served = 0;

    if (node_begin(&daemon->node, &bank) < 0)
        return; /* somebody holds the lock for too long: the next look tells */
    daemon->client_count = 0;
    for (uint32_t i = 0; i < bank->slot_high; i++)
        served += is_ours(daemon, &bank->slots[i]) && daemon->server && bank->slots[i].mps_server_pid == daemon->server;
    for (uint32_t i = 0; i < bank->slot_high; i++) {
        struct node_slot *slot = &bank->slots[i];
        if (!is_ours(daemon, slot))
            continue;
        changed |= slot->mps_server_pid ? orphan(daemon, slot) : admit(daemon, slot, &served);
        wake |= slot->fault != 0;
        list(daemon, slot);
    }
    if (!changed) {
        node_abandon(&daemon->node);
        return;
    }
    node_commit(&daemon->node);
    if (wake)
        node_wake(&daemon->node);
}

bool mps_daemon_terminate(struct mps_daemon *daemon, pid_t client)
{
    struct node_bank *bank;
    bool found = false;

    if (node_begin(&daemon->node, &bank) < 0)
        return false;
    for (uint32_t i = 0; i < bank->slot_high; i++) {
        struct node_slot *slot = &bank->slots[i];
        if (!is_ours(daemon, slot) || slot->pid != client || slot->mps_server_pid != daemon->server)
            continue;
        slot->fault = CUDA_FAULT_MPS_CLIENT_TERMINATED;
        found = true;
    }
    node_commit(&daemon->node);
    node_wake(&daemon->node);
    return found;
}

/* ---- Time ---- */

static uint32_t count_clients(const struct mps_daemon *daemon, bool failed)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < daemon->client_count; i++) {
        const struct mps_client *client = &daemon->clients[i];
        count += client->served && (!failed || (client->fault && !is_refusal(client->fault)));
    }
    return count;
}

/* The first that waits for a server of its own user. */
static const struct mps_client *waiting(const struct mps_daemon *daemon)
{
    for (uint32_t i = 0; i < daemon->client_count; i++)
        if (!daemon->clients[i].served && !daemon->clients[i].fault)
            return &daemon->clients[i];
    return NULL;
}

static bool has_faulted(struct mps_daemon *daemon)
{
    char text[64];

    return read(daemon->faults, text, sizeof text) > 0;
}

void mps_daemon_advance(struct mps_daemon *daemon, int64_t now_ms)
{
    const struct mps_client *next;

    if (daemon->server && waitpid(daemon->server, NULL, WNOHANG) == daemon->server)
        forget_server(daemon);
    if (daemon->state == MPS_INITIALIZING && now_ms - daemon->since_ms >= INITIALIZING_MS)
        daemon->state = MPS_ACTIVE;
    look(daemon);
    if (daemon->state != MPS_NO_SERVER && (has_faulted(daemon) || count_clients(daemon, true))) {
        daemon->state = MPS_FAULT;
        daemon->since_ms = now_ms;
    } else if (daemon->state == MPS_FAULT && now_ms - daemon->since_ms >= RETRY_MS) {
        daemon->state = MPS_ACTIVE;
    }
    next = waiting(daemon);
    if (!next)
        return;
    if (daemon->server && daemon->state == MPS_ACTIVE && !daemon->multiuser && next->uid != daemon->server_uid &&
        count_clients(daemon, false) == 0)
        mps_daemon_end_server(daemon);
    if (!daemon->server)
        mps_daemon_start_server(daemon, daemon->multiuser ? geteuid() : next->uid, now_ms);
}
