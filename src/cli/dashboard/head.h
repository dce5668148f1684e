/* The heads of HTTP messages between a browser and the daemon. A browser's is read in the one form that everybody reads
 * alike, and of what it holds only what the daemon needs is written anew: nothing that one side reads in one way and the
 * other in another can get through. */
#ifndef CARMA_CLI_DASHBOARD_HEAD_H
#define CARMA_CLI_DASHBOARD_HEAD_H

#include <stdbool.h>
#include <stddef.h>

#include "base/strbuf.h"

#define DASHBOARD_HEAD_LIMIT_BYTES (64 << 10)
#define DASHBOARD_BODY_LIMIT_BYTES (32 << 20) /* the daemon's own */

enum dashboard_header {
    HEADER_HOST,
    HEADER_ORIGIN,
    HEADER_FETCH_SITE,
    HEADER_COOKIE,
    HEADER_LENGTH,
    HEADER_ENCODING,
    HEADER_ACCEPT, /* from here on they are for the daemon */
    HEADER_ACCEPT_ENCODING,
    HEADER_CONTENT_TYPE,
    HEADER_IF_MODIFIED_SINCE,
    HEADER_IF_NONE_MATCH,
    HEADER_LAST_EVENT_ID,
    HEADER_COUNT
};

struct dashboard_head {
    char *text;         /* owned: what the others point into */
    const char *method; /* GET, HEAD or POST */
    const char *target; /* as it was sent: begins with '/', visible ASCII without '#' */
    const char *values[HEADER_COUNT]; /* NULL: not there */
    size_t body_bytes;                /* that follow */
};

/* Where the head ends, behind its empty line; 0: not all of it is there. */
size_t dashboard_head_end(const char *bytes, size_t length);

/* Reads a whole head. 0, or the HTTP status to refuse it with and why (static). Release it in either case. */
unsigned dashboard_head_parse(const char *bytes, size_t length, struct dashboard_head *head, const char **why);
void dashboard_head_release(struct dashboard_head *head);

/* The same request as the daemon is to have it; `token` is NULL where the socket says who asks. */
void dashboard_head_write(const struct dashboard_head *head, const char *host, const char *token, struct strbuf *out);

/* An answer's head, as it came, with what protects the page added where the daemon has not said it itself. False: it is no
 * head of an answer that may be passed on. */
bool dashboard_head_protect(const char *bytes, size_t length, struct strbuf *out);

#endif
