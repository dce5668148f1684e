/* The conversation with the plugin, of which slurm/plugin/helper.h has the other end and the words. */
#ifndef CARMA_SLURM_STEP_REQUEST_H
#define CARMA_SLURM_STEP_REQUEST_H

#include <stdint.h>

/* Reads the next block, whose words hide those of the same names before it. The program ends where there is none: the
 * plugin does not listen any more. */
void request_read(void);

/* The value of a word, or what it is otherwise. Texts stay until the program ends. */
const char *request_text(const char *name, const char *otherwise);
int64_t request_number(const char *name, int64_t otherwise);

/* A line of the answer. */
void answer(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The plugin has all lines until now. */
void answer_send(void);

#endif
