/* GPUs that are kept for a job which others would pass for too long: one job at a time (record RESERVED). With backfill
 * a job that needs much could wait for ever, and so could a user with little beside one with much. On the GPUs kept
 * only jobs start that fit beside it. In the order of arrival it so starts at the latest when those that run there now
 * have ended; under fair turns it does if that is before it gives way. */
#ifndef CARMA_CORE_RESERVE_H
#define CARMA_CORE_RESERVE_H

#include <stdbool.h>
#include <stdint.h>

struct core;
struct job;
struct record_list;

/* Jobs that wait since this time have waited for the starvation timeout; whether the job has. */
int64_t reserve_starved_ns(const struct core *core, int64_t now_ns);
bool reserve_is_starved(const struct core *core, const struct job *job, int64_t now_ns);

/* Reserves GPUs, or gives them back, where that is due. In the order of arrival they are the head's. Under fair turns
 * they are for the first that is starved, else for one that was passed (left_behind), for the starvation timeout; then
 * it gives way to others. True where the job starts at once. */
bool reserve_gpus(struct core *core, struct job *head, int64_t now_ns, struct record_list *out);

/* Until when the job that has GPUs reserved keeps them, unless it starts before; INT64_MAX: for as long as it waits. */
int64_t reserve_until_ns(const struct core *core);

/* When that may be due by itself; INT64_MAX: never. */
int64_t reserve_wake_ns(const struct core *core, int64_t now_ns);

#endif
