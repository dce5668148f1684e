/* Shared by the files of this module. */
#ifndef CARMA_STORE_STORE_INTERNAL_H
#define CARMA_STORE_STORE_INTERNAL_H

#include <pthread.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <sys/stat.h>

#include "base/strbuf.h"
#include "store/history.h"
#include "store/mark.h"
#include "store/store.h"

enum store_row_kind {
    ROW_RECORD,
    ROW_SPEC,
    ROW_NO_ENVIRONMENT,
    ROW_NO_SPEC,
    ROW_JOB,
    ROW_SNAPSHOT,
    ROW_PART,
    ROW_MARK,
    ROW_FORGET,
    ROW_METER,
    ROW_ENERGY,
    ROW_HISTORY,
    ROW_HISTORY_ENERGY,
    ROW_FORGET_HISTORY,
    ROW_HELD,
    ROW_REQUEST
};

/* One row to be: bodies lie one after another in the batch's text. */
struct store_row {
    enum store_row_kind kind;
    uint32_t type; /* of a record; of FORGET, FORGET_HISTORY: how many at most; of a request: how many jobs; of a
                    part: which */
    uint32_t uid;  /* of a request, a job */
    int64_t at_ns; /* of a record, a snapshot, a meter; of a job: its end; of FORGET: before when; of a request: s */
    int64_t spacing_ns; /* of a snapshot */
    uint64_t job;       /* of a request: the first */
    uint64_t digest;    /* of a request */
    int64_t mj;         /* an account's sum, a meter's counter */
    int64_t idle_mw;    /* of a meter */
    size_t offset;
    size_t length;
};

struct store_batch {
    struct store_row *rows; /* owned */
    size_t count;
    size_t capacity;
    struct strbuf bodies;
    struct store_row begun; /* the row to which the body is being appended */
    bool marked;            /* it is as of the last mark */
    int status;             /* negative: cannot be stored, error says why */
    struct error error;
    uint64_t epoch;
    void (*done)(int status, const char *error_text, void *user);
    void *user;
    struct store_batch *next;
};

struct batch_queue {
    struct store_batch *head;
    struct store_batch **tail;
};

/* Its files that SQLite has open. */
enum store_file { STORE_DATABASE, STORE_WAL, STORE_SHM, STORE_FILES };

struct store {
    char *directory;
    char *path; /* of the database */
    int lock_fd, directory_fd;
    int event_fd;
    sqlite3 *db; /* the owner's until the first commit, the thread's from then on */
    sqlite3_stmt *begin;
    sqlite3_stmt *commit;
    sqlite3_stmt *insert_record;
    sqlite3_stmt *insert_spec;
    sqlite3_stmt *drop_environment;
    sqlite3_stmt *drop_spec;
    sqlite3_stmt *put_meter;
    sqlite3_stmt *put_energy;
    sqlite3_stmt *insert_job;
    sqlite3_stmt *insert_snapshot;
    sqlite3_stmt *insert_part;
    sqlite3_stmt *forget_parts;
    sqlite3_stmt *put_request;
    sqlite3_stmt *put_history;
    sqlite3_stmt *put_history_energy;
    sqlite3_stmt *forget_history;
    sqlite3_stmt *forget_learned;
    sqlite3_stmt *put_held;
    sqlite3_stmt *drop_held;
    struct store_mark mark;        /* as written; the owner's and the thread's as `db` */
    int mark_fd;                   /* negative: the store was not found whole, and is left as it is */
    int wal_fd;                    /* negative: not opened yet */
    bool is_anew;                  /* the thread's: all is in a new file, which has not its name yet */
    struct stat made[STORE_FILES]; /* st_ino 0: not yet */
    uint32_t page_size;
    uint32_t wal_frames; /* since the last mark; 0: nothing was stored */
    uint64_t seq;        /* of the last record: the owner's until the first commit, the thread's from then on */
    uint64_t marked_seq; /* the thread's: `seq` at the last mark */
    bool more_to_forget; /* the thread's, until the batch is done: the last forgetting left some */
    uint64_t last_job;   /* as of store_open */
    pthread_t thread;
    bool thread_runs;
    bool committed;        /* owner: a batch was queued */
    uint64_t epoch;        /* owner: which failures it has been told of; stamped on batches */
    pthread_mutex_t mutex; /* guards the members below */
    pthread_cond_t wake;
    struct batch_queue queued;
    struct batch_queue finished;
    uint64_t transactions;
    bool closing;
    char *note;       /* owned; see store_take_note */
    bool heal_failed; /* the thread's: it has been noted */
};

/* lock.c: takes DIRECTORY/lock for this process, until the descriptor is closed. */
int store_lock(const char *directory, int *fd, struct error *err);

/* The directory itself, which keeps others out while somebody has removed that file. */
int store_lock_directory(const char *directory, int *fd, struct error *err);

/* database.c */
int store_database_open(const char *path, sqlite3 **db, struct error *err);
int store_database_open_to_read(const char *path, sqlite3 **db, struct error *err);

/* While SQLite's log grows, each transaction waits for the disk to note its new length and blocks, too. So it has its
 * length from the beginning, where the disk has that to spare. */
void store_database_make_room(sqlite3 *db, const char *path);

/* Until it is closed, all reads are of one moment, while a daemon writes and forgets. */
int store_database_hold(sqlite3 *db, const char *path, struct error *err);
int store_sqlite_error(sqlite3 *db, const char *path, const char *doing, struct error *err);

/* load.c: the numbers of the last record and of the last job, also where both have been forgotten. */
int store_read_last(struct store *store, struct error *err);

/* marking.c: before the database is opened; when it is open, with `seq` and `last_job`; after each commit; before it is
 * closed. The first two refuse a store that is not whole (-EBADMSG). */
int store_marking_check(struct store *store, struct error *err);
int store_marking_begin(struct store *store, struct error *err);
int store_marking_follow(struct store *store, struct error *err); /* each commit, from now on */
void store_marking_committed(struct store *store);
void store_marking_end(struct store *store);
int store_check_directory(const char *directory, struct error *err); /* store.c */

/* batch.c: a row; its body is all data appended to the batch's bodies in between. A batch that cannot be stored
 * (status) takes no more. */
void store_batch_begin(struct store_batch *batch, struct store_row row);
void store_batch_end(struct store_batch *batch);

/* present.c: the step to the present words, for which SQL has the function present(TEXT) in between */
#define STORE_PRESENT                                                                                                  \
    "UPDATE snapshot SET body = present(body); UPDATE part SET body = present(body);"                                  \
    "UPDATE record SET body = present(body); UPDATE record SET type = ifnull(json_extract(body, '$.type'), type)"      \
    " WHERE type IN ('trimmed', 'checkpoint', 'suspended', 'resumed') AND json_valid(body);"                           \
    "UPDATE job SET body = present(body);"
int store_present_begin(sqlite3 *db); /* a code of SQLite's */
void store_present_end(sqlite3 *db);

/* history_form.c: the step to form 5 */
extern const char store_history_form[];

/* history.c */
enum history_columns {
    HISTORY_COLUMNS =
#define COLUMN(type, member, kind, sums, form, name) +1
#include "store/history.def"
};

/* Which of a row of the history are wanted; `sums` and `text` as store_history_filter has them. */
struct history_want {
    uint8_t columns[HISTORY_COLUMNS];
    size_t count;
};
void store_history_want(struct history_want *want, bool sums, const char *text);
void store_history_put_columns(const struct history_want *want, struct strbuf *sql); /* between SELECT and FROM */

/* The columns of such a row; its texts are the statement's, until it is stepped. False: a text is missing. */
bool store_history_from_row(const struct history_want *want, sqlite3_stmt *row, struct store_history *out);
int store_prepare_history(struct store *store, struct error *err);
void store_release_history(struct store *store);
int store_write_history(struct store *store, const char *body, struct error *err);
int store_write_history_energy(struct store *store, uint64_t job, int64_t mj, struct error *err);
int store_forget_history(struct store *store, int64_t before_ns, uint32_t most, struct error *err);
int store_write_held(struct store *store, const char *body, struct error *err);

/* heal.c: opens the database, and remembers which files are its own: those of the WAL once there are some. store_heal()
 * makes what was removed again; negative: nothing can be stored. */
int store_open_database(struct store *store, struct error *err);
void store_heal_wal(struct store *store);
int store_heal(struct store *store, struct error *err);

/* writer.c */
void *store_writer_main(void *store);

/* store.c: all statements of the thread */
int store_prepare_statements(struct store *store, struct error *err);
void store_release_statements(struct store *store);
void store_release(sqlite3_stmt **const *statements, size_t count); /* which are NULL then */
int store_prepare(struct store *store, const char *sql, sqlite3_stmt **statement, struct error *err);
int store_step(struct store *store, sqlite3_stmt *statement, struct error *err); /* writer.c: runs it, and resets it */

#endif
