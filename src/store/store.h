/* The durable data: records and submissions, in one SQLite database on a thread of its own with group commit. Format:
 * docs/formats/store.md.
 *
 * One thread owns a `struct store`: the one that opens, loads, commits, dispatches and closes. Nothing here but
 * store_open, store_load and store_close waits for the disk. */
#ifndef CARMA_STORE_STORE_H
#define CARMA_STORE_STORE_H

#include <stdint.h>

#include "base/error.h"
#include "core/record.h"

struct store;
struct store_batch;

/* Opens (or makes) the store in `directory`, made with mode 0700 where it is not there. Only one process at a time may
 * have it: -EBUSY, at once, names the directory and the pid that has it. -EPERM: the directory belongs to, or may be
 * written by, somebody else. -EBADMSG: the file is damaged, or not a database. -ENOTSUP: a newer carma made it. */
int store_open(const char *directory, struct store **store, struct error *err);

/* The receiver of loaded data. Each may be NULL. A non-zero value from one ends the load and is returned, err then
 * saying at which row. */
struct store_taker {
    int (*on_spec)(uint64_t job, const char *json, void *user);
    /* As store_batch_job had it last. The records of the job up to `seq` are in it. */
    int (*on_job)(uint64_t job, uint64_t seq, const char *json, void *user);
    /* First those of a snapshot, where there is one, all with the seq of the last record that is in it. Then the log
     * from there on, seq by seq. */
    int (*on_record)(uint64_t seq, const struct record *record, void *user);
    void *user;
    uint64_t most_ended; /* specs and jobs: of ended ones, only this many; the user with the most lacks the oldest */
};

/* Hands out the parts that are needed to go on: submissions in the order of job numbers, then jobs. Then come the
 * newest snapshot that can be read and the records behind it. Must come before the first store_commit (-EBUSY).
 * -EBADMSG names a row that cannot be read. */
int store_load(struct store *store, const struct store_taker *taker, struct error *err);

/* Hands out all records that the store in `directory` still has, behind its oldest snapshot where the log's beginning
 * was forgotten. It is for reading only: the store is not locked, made or upgraded, and a daemon may be using it
 * meanwhile. */
int store_read(const char *directory, int (*on_record)(uint64_t seq, const struct record *record, void *user),
               void *user, struct error *err);

/* The receiver of checked data. Each may be NULL; a non-zero value ends it and is returned, err then being the
 * taker's. */
struct store_inspector {
    int (*on_spec)(uint64_t job, const char *json, void *user, struct error *err);
    int (*on_job)(uint64_t job, const char *json, void *user, struct error *err);
    int (*on_record)(uint64_t seq, const struct record *record, void *user, struct error *err); /* as store_read */
    /* Each snapshot, once the records up to it have been handed out; not the one that the log begins with. */
    int (*on_snapshot)(uint64_t seq, const struct record_list *snapshot, void *user, struct error *err);
    void *user;
};

/* Has SQLite check the database of `directory`, and hands out all that is in it. A daemon may be using it meanwhile.
 * -EBADMSG names the damaged part. */
int store_inspect(const char *directory, const struct store_inspector *inspector, struct error *err);

/* A line on what others had removed, since the last call; NULL: nothing. store_event_fd() is readable when there is
 * one. Owned by the caller. */
char *store_take_note(struct store *store);

/* Copies the database of `directory`, as it is at one moment, to the new file `to` of mode 0600. A daemon may be using
 * it meanwhile, and goes on. `on_progress` (may be NULL) is told how many of how many pages are done. */
int store_backup(const char *directory, const char *to, void (*on_progress)(int done, int all, void *user), void *user,
                 struct error *err);

/* Whether the store, which no daemon uses, is as its mark says (store_open refuses it otherwise). 0 also where a daemon
 * uses it, or there is no mark. */
int store_check_mark(const char *directory, struct error *err);

/* Makes a store that store_open refuses one that it opens, with what is left of it. SQLite must find that whole
 * (-EBADMSG: nothing is done). The WAL is kept, as `kept`, where it was damaged. Numbers of jobs that may be lost are
 * not given again: the next one is beyond them. */
struct store_recovery {
    uint64_t records; /* up to this one they are there */
    uint64_t stored;  /* and this was the last one, as far as is known */
    uint64_t next_job;
    char kept[512]; /* the WAL's new name; "": it was whole, or gone */
};
int store_recover(const char *directory, struct store_recovery *recovery, struct error *err);

/* The energy that has been shared out (daemon/node/energy.h). A GPU's meter: its energy counter (-1: it has none), as
 * it was at at_ns, and its idle power (-1: not known). An account: the part of the GPU's energy that a party has used;
 * a job's id, 0 (idle) or UINT64_MAX (unmanaged processes). Each is the newest that was committed. */
struct store_meter {
    const char *gpu; /* UUID */
    int64_t at_ns;
    int64_t counter_mj;
    int64_t idle_mw;
};

/* As store_load: before the first commit; a non-zero value from one of the functions ends it and is returned. */
int store_load_energy(struct store *store, int (*on_meter)(const struct store_meter *meter, void *user),
                      int (*on_account)(const char *gpu, uint64_t party, int64_t mj, void *user), void *user,
                      struct error *err);

/* A submission that was accepted under the id that its client had made: it is repeated without being done again. Its
 * jobs are first, first + 1, ...; `digest` tells another submission under the same id. */
struct store_request {
    const char *id;
    uint32_t uid;
    uint64_t digest;
    uint64_t first;
    uint32_t count;
    int64_t at_s; /* store_request_now_s */
};

#define STORE_REQUEST_KEPT_S 3600 /* a client repeats for 30 s */

/* Node time in seconds, which no scale makes shorter for a client. */
int64_t store_request_now_s(void);

/* As store_load_energy: the requests that are not older than STORE_REQUEST_KEPT_S, in the order of their jobs. */
int store_load_requests(struct store *store, int (*on_request)(const struct store_request *request, void *user),
                        void *user, struct error *err);

/* How node time goes on in a boot of the machine (base/nodetime.h); boot: "" where none is stored. As store_load,
 * before the first commit. */
struct store_clock {
    char boot[40]; /* the machine's boot_id */
    int64_t offset_ns;
};
int store_load_clock(const struct store *store, struct store_clock *clock, struct error *err);
int store_keep_clock(const struct store *store, const struct store_clock *clock, struct error *err);

/* The highest number that a job ever had, forgotten ones included: as of store_open, 0 where there was none. */
uint64_t store_last_job(const struct store *store);

/* Data that belongs together. A record that cannot be encoded (record_json.h) makes the commit of the whole batch
 * fail. */
struct store_batch *store_batch_new(void);
void store_batch_free(struct store_batch *batch); /* one that is not committed */
void store_batch_record(struct store_batch *batch, const struct record *record);
void store_batch_spec(struct store_batch *batch, uint64_t job, const char *json);

/* What nobody needs of the submission any more: the environment of a job that has ended; all of one that is forgotten.
 */
void store_batch_drop_environment(struct store_batch *batch, uint64_t job);
void store_batch_drop_spec(struct store_batch *batch, uint64_t job);

void store_batch_meter(struct store_batch *batch, const struct store_meter *meter);
void store_batch_energy(struct store_batch *batch, const char *gpu, uint64_t party, int64_t mj);
void store_batch_request(struct store_batch *batch, const struct store_request *request); /* in place of an older one */

/* The facts of a job as of this batch, replacing earlier ones; ended_ns: node time, -1: it has not ended. */
void store_batch_job(struct store_batch *batch, uint64_t job, uint32_t uid, int64_t ended_ns, const char *json);

/* The state that all records stored before and with this batch lead to (core/snapshot.h). Of snapshots, one in
 * spacing_ns is kept until it is forgotten; of the others the latest two. */
void store_batch_snapshot(struct store_batch *batch, int64_t at_ns, int64_t spacing_ns,
                          const struct record_list *snapshot);

/* A large snapshot is made beside the owner's work, by a copy of its process (daemon/engine/snapshotter.h). The mark is
 * committed at the moment of the copy. The copy makes the batch and saves it to a file of its own; the owner commits it
 * from there bit by bit, with others in between. Its jobs and its snapshot are then as of the mark, and a job that has
 * ended since stays as it is. Only the last bit makes the snapshot count. */
void store_batch_mark(struct store_batch *batch);
int store_batch_save(const struct store_batch *batch, int fd, struct error *err);
struct store_batch *store_batch_next(int fd); /* from where the file stands; NULL: there is no more that can be read */

/* Forgets submissions and jobs that ended before before_ns, and the records up to the latest snapshot that is older. It
 * also forgets requests that are older than STORE_REQUEST_KEPT_S. At most so many of each: others wait for this. */
void store_batch_forget(struct store_batch *batch, int64_t before_ns, uint32_t most);

/* Asked when such a batch is done: whether it, or a forgetting of the history with it, left some. */
bool store_has_more_to_forget(const struct store *store);

/* Queues the batch (taken over); any number may be under way. All batches that are queued when the thread is free
 * become one transaction. `done` (may be NULL) is called from store_dispatch, in the order of the commits. Status 0
 * means that the batch is on the disk. A negative errno means that nothing of it is or ever will be; error_text says
 * why in one line.
 *
 * A transaction that fails takes with it every batch that was queued before the failure was told: those may build on
 * lost data. Batches committed from the failed batch's `done` on are tried afresh. */
void store_commit(struct store *store, struct store_batch *batch,
                  void (*done)(int status, const char *error_text, void *user), void *user);

int store_event_fd(struct store *store); /* readable when store_dispatch has something to do; the store's to close */
void store_dispatch(struct store *store);

/* Transactions that were tried since store_open: commits divided by this is the gain of group commit. */
uint64_t store_transactions(struct store *store);

/* Commits the queued batches, calls the callbacks that are due, closes. A store_commit from a `done` called here fails
 * (-ESHUTDOWN). */
void store_close(struct store *store);

#endif
