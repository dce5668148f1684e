/* Keeps dcgm-exporter's files of jobs by GPU (job_files.h) as the jobs are, where the setting hpc_job_mapping_dir says
 * so. They are written on libuv's pool: a slow directory keeps nobody waiting. */
#ifndef CARMA_DAEMON_NODE_JOB_MAPPING_H
#define CARMA_DAEMON_NODE_JOB_MAPPING_H

#include "daemon/daemon.h"

struct job_mapping;

struct job_mapping *job_mapping_new(struct daemon *daemon); /* NULL where nothing is set; all that follows takes that */

/* The jobs on the GPUs may have changed. Cheap where it has not. */
void job_mapping_follow(struct job_mapping *mapping);

/* Removes the files and frees it, as the loop runs on. */
void job_mapping_free(struct job_mapping *mapping);

#endif
