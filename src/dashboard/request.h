/* A browser's request, written anew, with no more than the daemon needs. Nothing can get through that one side reads in
 * one way and the other in another. */
#ifndef CARMA_DASHBOARD_REQUEST_H
#define CARMA_DASHBOARD_REQUEST_H

#include "base/strbuf.h"
#include "http/fields.h"

#define DASHBOARD_BODY_LIMIT_BYTES (16 << 20) /* the daemon's own */

enum dashboard_field {
    FIELD_HOST,
    FIELD_ORIGIN,
    FIELD_FETCH_SITE,
    FIELD_COOKIE,
    FIELD_ENCODING,
    FIELD_ACCEPT, /* from here on they are for the daemon */
    FIELD_ACCEPT_ENCODING,
    FIELD_CONTENT_TYPE,
    FIELD_IF_MODIFIED_SINCE,
    FIELD_IF_NONE_MATCH,
    FIELD_LAST_EVENT_ID,
    FIELD_LENGTH,
    FIELD_COUNT
};

struct dashboard_request {
    const char *method; /* GET, HEAD or POST */
    const char *target; /* as it was sent: begins with '/', visible ASCII without '#' */
    struct http_field fields[FIELD_COUNT];
};

/* Reads the request on `connection`. 0, or the HTTP status to refuse it with and the reason (static). */
unsigned dashboard_request_read(struct dashboard_request *request, struct MHD_Connection *connection,
                                const char *method, const char *target, const char *version, const char **why);

/* The same request in the form for the daemon; `token` is NULL where the socket shows the user. */
void dashboard_request_write(const struct dashboard_request *request, const char *host, const char *token,
                             struct strbuf *out);

#endif
