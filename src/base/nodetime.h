/* Node time: the time of clocks on the node, in ns. It runs on CLOCK_BOOTTIME, which nobody sets: durations, limits,
 * energy and usage stay true whatever becomes of the wall clock.
 *
 * Without CARMA_TIME_SCALE it is the time since boot and an offset. carmad takes the offset once a boot, stores it, and
 * hands it to its children in CARMA_NODE_OFFSET: all that compare times agree, also over restarts. It is chosen so that
 * node time is the wall clock's (ns since the Unix epoch) at that moment, or follows the last stored time where that is
 * later: node time never goes back. Any other program takes the wall clock as it was at its start.
 *
 * Whoever looks is shown wall time: nodetime_shown_ns adds what the wall clock has been set by since, as far as it is
 * known now.
 *
 * With CARMA_TIME_SCALE=N (a virtual node only) node time is N times the time since boot, and is shown as it is. So the
 * node, the daemon, the jobs and the clients agree without talking. Job times, metrics and their intervals are node
 * time; socket, disk and kill time-outs are real time. */
#ifndef CARMA_BASE_NODETIME_H
#define CARMA_BASE_NODETIME_H

#include <stdint.h>
#include <time.h>

#include "base/error.h"

#define NODETIME_SCALE_MAX 10000

/* Reads CARMA_TIME_SCALE (a number from 1 to NODETIME_SCALE_MAX) and CARMA_NODE_OFFSET. Programs call it once, before
 * any other function here, to be able to refuse a bad value in one line. Without it the first use reads the values, and
 * takes a bad scale as 1. */
int nodetime_init(struct error *err);

/* Takes an offset, for this process and the children that it starts from now on. */
void nodetime_set_offset_ns(int64_t offset_ns);

/* The offset with which node time is the wall clock's now, or follows after_ns where that is later. */
int64_t nodetime_new_offset_ns(int64_t after_ns);

double nodetime_scale(void);
int64_t nodetime_now_ns(void);
int64_t nodetime_to_wall_ns(int64_t node_ns);   /* how long an interval of node time really lasts */
int64_t nodetime_from_wall_ns(int64_t wall_ns); /* how much node time passes in a real interval */
int64_t nodetime_clock_ns(clockid_t clock);     /* a clock of the system, as it is */
int64_t nodetime_monotonic_wall_ns(void);       /* real intervals for time-outs; unrelated to node time */

/* By how much the wall clock is ahead of node time. It changes only where the wall clock is set by more than a tenth of
 * a second, so that a time is shown alike each time. 0 with a scale. */
int64_t nodetime_shift_ns(void);
int64_t nodetime_shown_ns(int64_t node_ns);     /* a moment as it is shown: ns since the Unix epoch by the wall clock */
int64_t nodetime_of_shown_ns(int64_t shown_ns); /* and back: of a moment that somebody names */
int64_t nodetime_shown_now_ns(void);            /* this moment, as an answer has it */

#endif
