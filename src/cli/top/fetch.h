/* A thread that asks the daemon for `carma top`, so that the screen never waits. It asks for pictures at intervals, a
 * job's details, its output, and the user's actions. The daemon may go and come back. */
#ifndef CARMA_CLI_TOP_FETCH_H
#define CARMA_CLI_TOP_FETCH_H

#include "base/strbuf.h"
#include "cli/cluster/cluster.h"
#include "cli/top/model.h"

struct top_fetch;

/* The wanted data; asked for again with each picture. */
struct top_wish {
    size_t waiting;     /* this many jobs of the queue */
    uint64_t unfolded;  /* 1: a row for each job of an array; no bool, as there must be no padding */
    int64_t uid;        /* of this user alone; -1: of all */
    int64_t details_of; /* a job; -1: none */
    int64_t log_of;     /* a job; -1: none */
};

/* The data that came since the last taking. */
struct top_news {
    bool has_picture;
    struct top_picture picture;
    bool is_lost; /* the daemon does not answer, why: */
    char lost[sizeof(struct error)];
    int64_t details_of; /* a job; -1: no details came */
    json_t *details, *explanation;
    int64_t log_of; /* a job; -1: nothing of its log */
    struct strbuf log;
    char log_error[sizeof(struct error)]; /* the reason for its absence; "": it is there */
    bool has_answer;                      /* the answer to the action: */
    bool refused;
    char answer[sizeof(struct error)];
};

/* `socket` as of struct cli; where `cluster` is wanted, its nodes are asked instead. wake_fd is written to, one byte,
 * when there are news. period_ns: wall time. */
struct top_fetch *top_fetch_start(const char *socket, const struct cluster *cluster, int64_t period_ns, int wake_fd,
                                  const struct top_wish *wish);

/* Ends the thread, unless it waits for a daemon that does not answer: then it is left to the end of the process. */
void top_fetch_stop(struct top_fetch *fetch);

void top_fetch_want(struct top_fetch *fetch, const struct top_wish *wish);

/* POST /v1/jobs/ID/VERB (a literal), or, where `which` is not "", /v1/jobs/VERB?WHICH. False: the last request is not
 * done yet. */
bool top_fetch_do(struct top_fetch *fetch, int64_t job, const char *verb, const char *which);

/* The new data; to be released. */
void top_fetch_take(struct top_fetch *fetch, struct top_news *news);
void top_news_release(struct top_news *news);

#endif
