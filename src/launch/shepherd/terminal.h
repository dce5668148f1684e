/* The shepherd's side of a job to which somebody is attached (launch/terminal.h). */
#ifndef CARMA_LAUNCH_SHEPHERD_TERMINAL_H
#define CARMA_LAUNCH_SHEPHERD_TERMINAL_H

#include "base/error.h"

struct shepherd;
struct shepherd_request;

/* Makes the socket, before the job is let go. */
int terminal_open(struct shepherd *s, struct error *err);

/* The job's process has said that it has a terminal or a pipe: `channel` is the relay's, which begins. */
void terminal_begin(struct shepherd *s, int channel);

/* A line of carma's among what the job's terminal shows; nothing where it has none. */
void terminal_say(const struct shepherd *s, const char *text);

/* No process of the job is left. The relay takes what is still in the terminal to the output, and ends. */
void terminal_end(struct shepherd *s);

void terminal_remove(const struct shepherd_request *request);

#endif
