/* carma dashboard: a browser's way to the daemon. A process of the user's own listens on this machine's loopback
 * address and passes on the page's requests. So the daemon sees the user, as with every other command. */
#ifndef CARMA_DASHBOARD_DASHBOARD_H
#define CARMA_DASHBOARD_DASHBOARD_H

#include <stddef.h>

#include "base/error.h"
#include "base/trust/token.h"
#include "cli/cluster/cluster.h"

/* Where the daemon is. */
struct dashboard_place {
    const char *name;   /* a socket's path, or tcp://ADDRESS:PORT */
    const char *tcp;    /* ADDRESS:PORT; NULL: a Unix socket */
    struct token token; /* by TCP */
    struct cluster cluster;
};

/* ---- The server (dashboard/server.c) ---- */

/* At once; the daemon gives one user 128, and a browser takes six of one page. */
#define DASHBOARD_CONNECTIONS 64

struct dashboard_server;

/* Listens on 127.0.0.1, and answers on its own threads; port 0: a free one. *address is for a browser, owned by the
 * caller. */
int dashboard_server_new(const struct dashboard_place *place, unsigned port, struct dashboard_server **server,
                         char **address, struct error *err);
unsigned dashboard_server_port(const struct dashboard_server *server);
void dashboard_server_free(struct dashboard_server *server);

/* ---- Local answers (dashboard/local.c) ---- */

#define DASHBOARD_LOCAL_PREFIX "/local/"

struct dashboard_answer {
    unsigned status;
    const char *type; /* media type; static */
    char *body;       /* owned */
    size_t length;
};

/* An error's one sentence, for a program or, where `accept` says so, as a page; it may be NULL. */
void dashboard_answer_error(struct dashboard_answer *answer, unsigned status, const char *accept, const char *why);

/* Answers GET of a target that begins with DASHBOARD_LOCAL_PREFIX: facts that the user's own process knows or may read.
 * It asks the daemon and reads files, and so takes its time. */
void dashboard_local_answer(const struct dashboard_place *place, const char *target, struct dashboard_answer *answer);

#endif
