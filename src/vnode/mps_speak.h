/* What a virtual MPS control daemon answers, in NVIDIA's two languages (docs/mps.md). */
#ifndef CARMA_VNODE_MPS_SPEAK_H
#define CARMA_VNODE_MPS_SPEAK_H

#include "base/strbuf.h"
#include "vnode/mps_daemon.h"

struct mps_speaker {
    struct mps_daemon *daemon;
    int version; /* 2 or 3 */
    bool quit;   /* it was told to */
};

/* A command and its answer. `arguments`: it came as arguments of the program, not on its standard input. Returns the
 * program's exit status. */
int mps_speak(struct mps_speaker *speaker, const char *line, bool arguments, int64_t now_ms, struct strbuf *answer);

#endif
