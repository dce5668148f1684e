/* A request to carma-sandbox: one JSON object (docs/automatic-capture.md). Everything in it that a user chose
 * is used with that user's rights only, inside the sandbox. */
#ifndef CARMA_SANDBOX_REQUEST_H
#define CARMA_SANDBOX_REQUEST_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

struct sandbox_request {
    json_t *json; /* owned; has the texts below */
    uid_t uid;
    gid_t gid;
    const char *user;      /* root gives the command this user's groups; NULL: only gid */
    const char *directory; /* absolute */
    char **environment;    /* owned array, NULL at its end; without the variables that lead to services outside */
    char **command;        /* the same */
    int64_t time_s;        /* wall time, for everything */
    int64_t memory_bytes;  /* of all processes and all files that they write */
    int64_t cores;
    int64_t result_bytes_max;
    bool bare; /* the user accepted that there is no sandbox: his command runs as he, and its effects are real */
    const char *cgroup; /* directory of a control group (version 2), below which it makes one of its own; NULL: none */
};

int sandbox_request_read(const char *text, size_t length, struct sandbox_request *request, struct error *err);
void sandbox_request_release(struct sandbox_request *request);

/* Runs /bin/true, as a user without rights where root asks. */
void sandbox_request_for_check(struct sandbox_request *request);

#endif
