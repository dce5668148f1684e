/* The caller's terminal, whose keys may go to a job one by one. */
#ifndef CARMA_CLI_ATTACH_KEYS_H
#define CARMA_CLI_ATTACH_KEYS_H

#include <stdbool.h>
#include <termios.h>

/* Zero-initialise. */
struct keys {
    bool taken;            /* each comes at once, and means nothing here */
    struct termios before; /* the terminal's modes otherwise */
};

/* Whether the terminal at the standard input is ours now: a command in the background may not read it. */
bool keys_are_ours(void);

/* And what is shown goes to a terminal, too: a job gets one. */
bool keys_are_here(void);

void keys_take(struct keys *keys); /* where they are here */
void keys_leave(struct keys *keys);

#endif
