/* The answers of a virtual MPS control daemon, as NVIDIA's give them (docs/mps.md). */
#ifndef CARMA_VNODE_MPS_SPEAK_H
#define CARMA_VNODE_MPS_SPEAK_H

#include "base/strbuf.h"
#include "vnode/mps_daemon.h"

/* The major versions of the driver that brought each command. */
#define MPS_DRIVER_CLIENTS   535 /* a client's limits and priority, its end, and `ps` */
#define MPS_DRIVER_STATES    550 /* a server's state, and a pid file */
#define MPS_DRIVER_MULTIUSER 555
#define MPS_DRIVER_V3        615 /* another protocol, where CUDA_MPS_PROTOCOL_VERSION asks for it */

struct mps_speaker {
    struct mps_daemon *daemon;
    int driver; /* its major version */
    uid_t uid;  /* of the asking process */
    bool quit;  /* it was told to */
};

/* A command and its answer; a refusal is told by text alone. */
void mps_speak(struct mps_speaker *speaker, const char *line, int64_t now_ms, struct strbuf *answer);

#endif
