/* Keeps the store, and the memory of ended jobs, from growing for ever: a snapshot now and then, and jobs older than
 * the retention forgotten. */
#ifndef CARMA_DAEMON_ENGINE_KEEPER_H
#define CARMA_DAEMON_ENGINE_KEEPER_H

#include "daemon/daemon.h"

/* Ended jobs that are remembered in memory and have their run directories, the latest; the store has the others until
 * they are forgotten. */
#define SNAPSHOTTER_MOST_ENDED 10000

struct engine_calls;

struct snapshotter *snapshotter_new(struct daemon *daemon, const struct engine_calls *calls); /* borrowed */
void snapshotter_free(struct snapshotter *snapshotter);

/* A record was loaded, of a snapshot or behind it. Commits nothing: the core has not taken in everything yet. A
 * snapshot now would hold less than the store. */
void snapshotter_loaded(struct snapshotter *snapshotter, const struct record *record);

/* This many records were committed: all input of the core is on its way to the store. Commits a snapshot when one is
 * due. */
void snapshotter_count(struct snapshotter *snapshotter, size_t records);

#endif
