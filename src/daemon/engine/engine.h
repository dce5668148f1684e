/* Inputs in, decisions out, both stored before anything is done about them.
 *
 * A turn is a batch of inputs, the decisions that follow, and the actions after they are stored. Turns are committed in
 * order. When the disk refuses, nothing is lost and nothing is done: the turns wait and are retried, and new
 * submissions are refused. */
#ifndef CARMA_DAEMON_ENGINE_ENGINE_H
#define CARMA_DAEMON_ENGINE_ENGINE_H

#include "daemon/daemon.h"

struct store_batch;
struct store_request;

/* Folders that act on records are told of them, and need not be known here. The engine calls them by these functions;
 * they call the engine by engine_input(). */
struct engine_calls {
    void (*ends)(struct daemon *daemon); /* a turn is about to end: gathered data may become inputs of it */
    bool (*applied)(struct daemon *daemon,
                    const struct record *record);           /* to the core; true: its job has ended with it */
    void (*submitted)(struct daemon *daemon, uint64_t job); /* its submission is stored */
    /* Its submission cannot be stored and was refused: it is about to be cancelled. True: nothing shall be left of it,
     * the spec is not stored. */
    bool (*withdrawn)(struct daemon *daemon, uint64_t job);
    void (*decided)(struct daemon *daemon);                             /* all decisions of a turn are applied */
    void (*placed)(struct daemon *daemon, const struct record *placed); /* while that decision is being stored */
    void (*stored)(struct daemon *daemon,
                   const struct record *record); /* it may be acted on; what that inputs is of the current turn */
    void (*store_ended)(struct daemon *daemon, struct store_batch *batch,
                        uint64_t job); /* adds the kept data of that job */
    void (*store_changed)(struct daemon *daemon,
                          struct store_batch *batch); /* likewise of all jobs that have changed, for a snapshot */
    void (*changed_taken)(struct daemon *daemon);     /* store_changed() has them all, here or in a copy */
    /* The batch of store_changed() is stored, and jobs that ended before are forgotten; or it is not stored. */
    void (*changed_stored)(struct daemon *daemon, bool stored, int64_t forgotten_before_ns);
};

struct engine *engine_new(struct daemon *daemon, const struct engine_calls *calls); /* borrowed */
void engine_free(struct engine *engine);

/* One input of the current turn, applied at once. An error (as core_apply's) leaves everything as it was. */
int engine_input(struct engine *engine, const struct record *record, struct error *err);

/* A job's spec, new or with another estimate: stored with the current turn; taken over. The
 * jobs of an array may share one text, one after the other. */
void engine_store_spec(struct engine *engine, uint64_t job, char *json);

/* That the current turn's jobs were submitted under a client's id (daemon/engine/repeats.h). Where the turn cannot be
 * stored, they are withdrawn and the id is free again. Of a withdrawn job the store gets the records alone: the log
 * stays whole. */
void engine_store_request(struct engine *engine, const struct store_request *request);

/* `done` is called when all inputs so far are stored (status 0): now, where they are. Or at once and only once when
 * storing failed. */
void engine_on_stored(struct engine *engine, void (*done)(int status, const char *error, void *user), void *user);

/* Ends the turn: decides, and commits inputs and decisions. */
void engine_turn(struct engine *engine);

/* Why nothing can be stored at the moment; NULL while all is well. */
const char *engine_trouble(const struct engine *engine);

/* How many decisions of that type (enum record_type) there were since carmad began. */
uint64_t engine_decisions(const struct engine *engine, uint32_t type);

#endif
