/* The answers of a virtual MPS control daemon, in NVIDIA's two languages (docs/mps.md). */
#ifndef CARMA_VNODE_MPS_SPEAK_H
#define CARMA_VNODE_MPS_SPEAK_H

#include "base/strbuf.h"
#include "vnode/mps_daemon.h"

/* The major versions of the driver that brought each command. The first of version 3 is unknown: newer than all
 * recorded control programs. */
#define MPS_DRIVER_CLIENTS   535 /* a client's limits and priority, its end, and `ps` */
#define MPS_DRIVER_STATES    550 /* a server's state, and a pid file */
#define MPS_DRIVER_MULTIUSER 555
#define MPS_DRIVER_V3        556

struct mps_speaker {
    struct mps_daemon *daemon;
    int driver;  /* its major version */
    int version; /* 2 or 3 */
    bool quit;   /* it was told to */
};

/* A command and its answer. `arguments`: it came as arguments of the program, not on its standard input. Returns the
 * program's exit status: 0 in version 2, where a refusal is told by text alone. */
int mps_speak(struct mps_speaker *speaker, const char *line, bool arguments, int64_t now_ms, struct strbuf *answer);

#endif
