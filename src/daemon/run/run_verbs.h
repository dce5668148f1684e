/* What a run is told: one table of verbs, by the kinds of runs. */
#ifndef CARMA_DAEMON_RUN_RUN_VERBS_H
#define CARMA_DAEMON_RUN_RUN_VERBS_H

#include "daemon/run/runs.h"

/* A record is stored: what follows from it for its job's run is done, where something does. */
void run_verbs_act(struct runs *runs, const struct record *record);

/* Whether its job's run hears what its owner wants to tell it; before the record is made. */
int run_verbs_check(const struct runs *runs, uint64_t job, const struct record_commanded *commanded, struct error *err);

#endif
