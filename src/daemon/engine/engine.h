/* Inputs in, decisions out, both stored before anything is done about them.
 *
 * A turn is a batch of inputs, the decisions that follow, and the actions after they are stored. Turns are committed in
 * order. When the disk refuses, nothing is lost and nothing is done: the turns wait and are retried, and new
 * submissions are refused. */
#ifndef CARMA_DAEMON_ENGINE_ENGINE_H
#define CARMA_DAEMON_ENGINE_ENGINE_H

#include "daemon/daemon.h"

struct store_request;

struct engine *engine_new(struct daemon *daemon);
void engine_free(struct engine *engine);

/* One input of the current turn, applied at once. An error (as core_apply's) leaves everything as it was. */
int engine_input(struct engine *engine, const struct record *record, struct error *err);

/* A new job's spec, stored with the current turn; taken over. */
void engine_store_spec(struct engine *engine, uint64_t job, char *json);

/* That the current turn's jobs were submitted under a client's id (daemon/engine/repeats.h); where the turn cannot be stored, they
 * are withdrawn and the id is free again. */
void engine_store_request(struct engine *engine, const struct store_request *request);

/* `done` is called when the current turn is stored (status 0), or at once and only once when storing failed. */
void engine_on_stored(struct engine *engine, void (*done)(int status, const char *error, void *user), void *user);

/* Ends the turn: decides, and commits what there is. */
void engine_turn(struct engine *engine);

/* Why nothing can be stored at the moment; NULL while all is well. */
const char *engine_trouble(const struct engine *engine);

/* How many decisions of that type (enum record_type) there were since carmad began. */
uint64_t engine_decisions(const struct engine *engine, uint32_t type);

#endif
