/* Which jobs a request is about, in its query: GET /v1/jobs and POST /v1/jobs/VERB have the same words.
 *
 *     ids=7,12-20,30_[0-3]   numbers, ranges, jobs of arrays; 7 is all of array 7, where it is one
 *     user=NAME, uid=U       whose; uid=self: the caller's
 *     state=S,S              the names and letters of states; all, running, waiting, ended
 *     name=GLOB              with * and ?
 *     account=NAME, tag=NAME of which project; one of its tags
 *
 * To add a word: a member here, its line in selection_read() and in selection_has(). */
#ifndef CARMA_DAEMON_REQUEST_SELECTION_H
#define CARMA_DAEMON_REQUEST_SELECTION_H

#include "daemon/daemon.h"
#include "http/http.h"

#define SELECTION_WORDS 1000 /* of ids */
#define SELECTION_GLOB  128  /* bytes */

struct array_words;

struct selected_ids {
    uint64_t first, last;
    struct array_words *indices; /* owned; NULL: all */
    char *text;                  /* owned: as it was written */
    bool is_range;
    uint64_t found; /* jobs so far */
};

struct selection {
    uint32_t states;  /* 1 << enum job_state */
    bool has_states;  /* they were said */
    uint64_t uid;     /* UINT64_MAX: everybody's */
    const char *user; /* borrowed from the request, as are the others; NULL: any */
    const char *name, *account, *tag;
    uint64_t array;               /* 0: of any, or none */
    struct selected_ids *ids;     /* owned array */
    size_t id_count, id_capacity; /* 0: any */
    uint64_t least_id, most_id;   /* of these */
};

/* False: it has been answered that this is not known. `otherwise`: the states where none is said. */
bool selection_read(const struct daemon *daemon, struct http_request *request, uint32_t otherwise,
                    struct selection *selection);

uint32_t selection_states_unfinished(void);

/* No word was said. */
bool selection_is_all(const struct selection *selection);

/* Whether the job is one of them; those of an id that were found are counted. */
bool selection_has(struct selection *selection, const struct job_view *view);

/* The first job that may be one, in the order of ids; NULL: there is none. */
const struct job_view *selection_begin(const struct selection *selection, const struct views *views);

void selection_release(struct selection *selection);

#endif
