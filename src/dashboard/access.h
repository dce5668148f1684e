/* Access to the daemon through `carma dashboard`: only for the browser that showed the token first, from the page
 * itself. It acts on behalf of the user that runs it. */
#ifndef CARMA_DASHBOARD_ACCESS_H
#define CARMA_DASHBOARD_ACCESS_H

#include <stdatomic.h>

#include "base/trust/token.h"
#include "dashboard/request.h"

struct dashboard_access {
    unsigned port;
    struct token token;  /* of the address that is printed; good once */
    struct token cookie; /* the cookie that the browser gets for it */
    atomic_bool used;    /* the token */
};

/* Two secrets of 256 bits each. */
int dashboard_access_init(struct dashboard_access *access, unsigned port, struct error *err);

enum dashboard_verdict {
    DASHBOARD_REFUSED,
    DASHBOARD_ENTER,   /* it shows the token: give it the cookie */
    DASHBOARD_WELCOME, /* it shows the token, and has the cookie already */
    DASHBOARD_GRANTED
};

/* Judges one request. Where it is refused, *status and *why (static) say so. */
enum dashboard_verdict dashboard_access_judge(struct dashboard_access *access, const struct dashboard_request *request,
                                              unsigned *status, const char **why);

#endif
