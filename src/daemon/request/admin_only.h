/* Requests that administrators alone may make. */
#ifndef CARMA_DAEMON_REQUEST_ADMIN_ONLY_H
#define CARMA_DAEMON_REQUEST_ADMIN_ONLY_H

struct daemon;
struct http_request;

typedef void admin_answer(struct daemon *daemon, struct http_request *request);

/* Answers by `answer` if the asking user is an administrator; else `refusal` is the reply, a literal. */
void admin_only(struct daemon *daemon, struct http_request *request, admin_answer *answer, const char *refusal);

#endif
