/* One request to the daemon, of which a thread waits for the answer as long as the browser does. */
#ifndef CARMA_DASHBOARD_UPSTREAM_H
#define CARMA_DASHBOARD_UPSTREAM_H

#include <sys/types.h>

#include "client/http1.h"

struct upstream {
    int fd;                   /* -1: not connected */
    int browser;              /* the socket that the answer is for; borrowed */
    bool refusing;            /* the daemon takes no more of the request */
    struct http1_reply reply; /* its head; the part of its body that was not read yet */
    size_t read_bytes;        /* of that part */
};

void upstream_init(struct upstream *upstream, int browser, bool head_only);
void upstream_release(struct upstream *upstream);

/* Connects to a place of client/connect.h. */
int upstream_connect(struct upstream *upstream, const char *place, struct error *err);

/* Sends all of it, unless the daemon answers or goes before. -ETIMEDOUT, -EPIPE: as upstream_answer. */
int upstream_send(struct upstream *upstream, const char *bytes, size_t length, struct error *err);

/* Waits for the whole head of the answer. -EPIPE: the browser has gone; -ETIMEDOUT: both sides were silent for too
 * long; -EPROTO: the answer is not a daemon's. */
int upstream_answer(struct upstream *upstream, struct error *err);

/* The next bytes of the answer's body, as they come: how many, 0 at its end, or negative as above. */
ssize_t upstream_read(struct upstream *upstream, char *bytes, size_t size);

#endif
