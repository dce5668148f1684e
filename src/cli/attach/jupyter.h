/* What carma jupyter has to know of JupyterLab: where its program is, its token, and where it serves. */
#ifndef CARMA_CLI_ATTACH_JUPYTER_H
#define CARMA_CLI_ATTACH_JUPYTER_H

#include <jansson.h>

#include "api/spec.h"
#include "base/error.h"

/* Adds the command's words: JupyterLab's program as the shell has it, or that of the job's own environment, and what
 * has it serve this machine alone. `words`: the user's, behind these. -ENOENT: there is none. */
int jupyter_command(const struct job_spec *options, char **words, size_t count, struct spec_strings *command,
                    struct error *err);

/* The user's token, which is made the first time: whoever has it has all of his notebooks. It is in a file that he
 * alone can read, and in their environment: JupyterLab then writes it nowhere. Owned by the caller. */
int jupyter_token(char **token, struct error *err);

/* Of a job that runs: "http://127.0.0.1:8888/lab", once it says so in its output; else NULL. Owned by the caller. */
char *jupyter_address(const json_t *job);

/* Its port; 0: it has none. */
unsigned jupyter_port(const char *address);

#endif
