/* Where launches live: DIRECTORY/JOB-LAUNCH-TRY. A try is spent when the daemon died before its shepherd began. They
 * stay for as long as their job is remembered: how it ended is in them. */
#ifndef CARMA_DAEMON_RUN_RUN_DIRECTORIES_H
#define CARMA_DAEMON_RUN_RUN_DIRECTORIES_H

#include <stdbool.h>
#include <stdint.h>

char *run_directory(const char *directory, uint64_t job, uint32_t launch, uint32_t try); /* owned by the caller */

/* The number of tries that have left a directory. */
uint32_t run_directory_tries(const char *directory, uint64_t job, uint32_t launch);

/* The last launch of the job that has left one; 0: none has. */
uint32_t run_directories_last(const char *directory, uint64_t job);

bool run_directories_any(const char *directory);

/* Removes those of a job that had this many launches. */
void run_directories_remove(const char *directory, uint64_t job, uint32_t attempts);

/* Removes those of unknown launches, except of one with a running shepherd; the log tells of that. */
void run_directories_sweep(const char *directory, bool (*is_known)(uint64_t job, uint32_t launch, const void *user),
                           const void *user);

#endif
