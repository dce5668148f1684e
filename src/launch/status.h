/* The status file: written by the shepherd, read by the daemon (docs/formats/launch-status.md). */
#ifndef CARMA_LAUNCH_STATUS_H
#define CARMA_LAUNCH_STATUS_H

#include <stddef.h>

#include "launch/launch.h"

/* How a status comes to its place. EXCLUSIVE fails with -EEXIST where there is one. LAST is synced to the disk, since
 * nobody can find it out again. */
enum status_write { STATUS_EXCLUSIVE, STATUS_REPLACE, STATUS_LAST };

void status_init(struct launch_status *status); /* STARTING, everything unknown */

/* A launch that had not ended when the machine was started anew. Its status now names processes of others, with the
 * same pids and maybe the same start times, so it is forgotten. `boot` is the boot that is now
 * (base/proc.h). */
void status_forget_other_boot(struct launch_status *status, const char *boot);

/* The first status in four steps, so that little is left to do once the job may run. The file is made; once there is a
 * job it is written; then it is given its name (-EEXIST where there is a status, as with EXCLUSIVE), and its other name
 * goes. */
int status_open_first(const char *run_directory, struct error *err);
int status_write_first(int fd, const struct launch_status *status, struct error *err);
int status_name_first(const char *run_directory, const struct launch_status *status, struct error *err);
void status_close_first(int fd, const char *run_directory);

int status_write(const char *run_directory, const struct launch_status *status, enum status_write how,
                 struct error *err);

/* The text of a file; `name` is for messages. Keys that this version does not know are skipped. */
int status_parse(const char *name, const char *text, size_t length, struct launch_status *status, struct error *err);

/* Copies text of unknown origin to a status message: its first line, control characters as '?', cut to the size there.
 * */
void status_set_message(struct launch_status *status, const char *text, size_t length);

#endif
