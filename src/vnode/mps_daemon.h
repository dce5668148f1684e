/* The state machine of a virtual MPS control daemon: one server at a time for one user's clients, as NVIDIA's
 * ("Architecture" of its MPS documentation). Clients are the node's processes that came through its pipe directory
 * (struct node_slot: mps_domain); they are looked for, as nobody tells when one comes. Wall times. */
#ifndef CARMA_VNODE_MPS_DAEMON_H
#define CARMA_VNODE_MPS_DAEMON_H

#include <stdbool.h>
#include <sys/types.h>

#include "vnode/node.h"

enum mps_state { MPS_NO_SERVER, MPS_INITIALIZING, MPS_ACTIVE, MPS_FAULT };

struct mps_client {
    int32_t pid;
    uint32_t uid;
    bool served;
    uint32_t fault; /* the CUDA error with which it has to end; 0: none */
    uint32_t gpu;   /* the first that it uses */
};

struct mps_daemon {
    struct node node;
    uint64_t identity; /* attach_mps_domain() */
    bool multiuser;
    uint32_t client_limit; /* contexts of a device: 48, from CUDA 13.1 on 60 */
    enum mps_state state;
    pid_t server; /* our child: it has a pid in the lists, and hears of faults (vnode/domain.c) */
    int faults;   /* a byte from it for each */
    uid_t server_uid;
    int64_t since_ms; /* of the state; in FAULT: when the last that failed was observed */
    double thread_percentage;
    char pinned_limit[NODE_MAX_GPUS][16];
    int priority; /* of clients */
    uint32_t client_count;
    struct mps_client clients[NODE_MAX_SLOTS]; /* as last looked */
};

/* Opens the node of $CARMA_VNODE for the daemon of that pipe directory; its `control` is there. */
int mps_daemon_open(struct mps_daemon *daemon, const char *pipe_directory, struct error *err);
void mps_daemon_close(struct mps_daemon *daemon); /* and ends the server */

/* Events until now: clients come, fail and go, a server becomes ready, fails, recovers, or ends for another. */
void mps_daemon_advance(struct mps_daemon *daemon, int64_t now_ms);

/* -EEXIST: there is one; -EPERM: of another user, which only root's daemon can start. */
int mps_daemon_start_server(struct mps_daemon *daemon, uid_t uid, int64_t now_ms);
void mps_daemon_end_server(struct mps_daemon *daemon);

/* Whether it was one of the server's clients; it ends at its next look, and takes nobody with it. */
bool mps_daemon_terminate(struct mps_daemon *daemon, pid_t client);

#endif
