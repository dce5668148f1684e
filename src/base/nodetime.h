/* Node time: the time of clocks on the node. Without CARMA_TIME_SCALE it is the wall clock (ns since the Unix epoch).
 * With CARMA_TIME_SCALE=N (a virtual node only) it runs N times faster: N times the time since boot. So the node, the
 * daemon, the jobs and the clients agree without talking. Job times, metrics and their intervals are node time; socket,
 * disk and kill time-outs are wall time. */
#ifndef CARMA_BASE_NODETIME_H
#define CARMA_BASE_NODETIME_H

#include <stdint.h>

#include "base/error.h"

#define NODETIME_SCALE_MAX 10000

/* Reads CARMA_TIME_SCALE (a number from 1 to NODETIME_SCALE_MAX). Programs call it once, before any other function
 * here, to be able to refuse a bad value in one line. Without it the first use reads the value, and takes a bad one as
 * 1. */
int nodetime_init(struct error *err);

double nodetime_scale(void);
int64_t nodetime_now_ns(void);
int64_t nodetime_to_wall_ns(int64_t node_ns);   /* how long an interval of node time lasts on the wall clock */
int64_t nodetime_from_wall_ns(int64_t wall_ns); /* how much node time passes in one of the wall clock */
int64_t nodetime_monotonic_wall_ns(void);       /* wall intervals for time-outs; unrelated to node time */

#endif
