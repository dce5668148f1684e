/* Deciding again as a daemon did. Its stored inputs are fed to a core, and the core's decisions are compared with the
 * stored ones, byte for byte (api/record_json.h).
 *
 * A group is the inputs up to the next stored decision, and the decisions that follow. The time of a decision is that
 * of the group's first stored one. Inputs after which the daemon decided nothing become part of the next group: a
 * decision that yields nothing changes nothing. */
#ifndef CARMA_SIM_REPLAY_H
#define CARMA_SIM_REPLAY_H

#include <stdint.h>

#include "base/error.h"
#include "base/strbuf.h"
#include "core/record.h"

struct replay;

struct replay *replay_new(void);
void replay_free(struct replay *replay);

/* The next stored record. 0, also where decisions differ (see replay_difference); -EPROTO: the core does not take the
 * input. Then the store is not of a daemon that ran, or the core is another. */
int replay_record(struct replay *replay, uint64_t seq, const struct record *record, struct error *err);

/* After the last record. */
void replay_finish(struct replay *replay);

/* The first difference as text for people, a few lines; NULL while there is none. */
const char *replay_difference(const struct replay *replay);

uint64_t replay_records(const struct replay *replay);
uint64_t replay_decisions(const struct replay *replay); /* stored ones that were decided again, all alike */

#endif
