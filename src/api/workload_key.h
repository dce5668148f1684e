/* The name under which the memory of earlier runs is kept. */
#ifndef CARMA_API_WORKLOAD_KEY_H
#define CARMA_API_WORKLOAD_KEY_H

#include <sys/types.h>

#include "core/record.h"

struct job_spec;

/* Two jobs with the same key are runs of the same thing. They have the same user, directory, model, batch size and
 * training, and the same program with the same arguments. Variables that are named like a size (BATCH_SIZE, MODEL,
 * SEQ_LEN) are the same, too. Of a script it is the text with its arguments, and not its path; of a command, its
 * `code`. Arguments that choose a seed, a learning rate or the name of an output are left out (docs/estimation.md).
 *
 * Before ':' stands the program, which runs with other arguments have in common (core/guess/program_history.h). It is
 * the user, the directory and the script. A script is its text where it was submitted, and its path where a command
 * starts it. */
void workload_key(const struct job_spec *spec, uid_t uid, char key[static RECORD_WORKLOAD_SIZE]);

#endif
