/* A process and all that descends from it, as /proc shows them. */
#ifndef CARMA_LAUNCH_TREE_H
#define CARMA_LAUNCH_TREE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Every process on the machine at about one time. Zero-initialise. */
struct tree_process {
    pid_t pid;
    pid_t parent;
    pid_t session;
    bool ended;
    bool stopped; /* by a signal: it runs nothing */
    uint64_t start_ticks;
    bool member; /* for the caller's selection */
};

struct tree {
    bool (*spares)(pid_t pid);  /* those get no signal but SIGKILL, as long as others do; NULL: none */
    struct tree_process *items; /* owned */
    size_t count;
    size_t capacity;
    pid_t spared; /* a process that is no member, whosever child it is; 0: none */
};

void tree_read(struct tree *tree); /* over the old one */
void tree_release(struct tree *tree);

/* Makes members of all descendants of members and of `root` (-1: none), but not of `root` itself, nor of `spared`. */
void tree_select_descendants(struct tree *tree, pid_t root);

/* Sends a signal to the process that had this start time, never to a later one with its pid. 0, -ESRCH, -EPERM. */
int tree_signal_one(pid_t pid, uint64_t start_ticks, int signal);

/* Sends a signal to all descendants of `root`; returns how many there were, zombies not counted. */
int tree_signal(struct tree *tree, pid_t root, int signal);

/* Sends SIGSTOP to all descendants of `root` that are not stopped, and returns how many these were: a signal takes a
 * moment to act, and others were forked meanwhile. */
int tree_stop(struct tree *tree, pid_t root);

/* Sends a signal to those descendants of `root` that catch it, block it (to read it from a signalfd) or wait for it in
 * sigwait(). Any other would be ended by it. Takes at most a second longer where one's memory cannot be read. Returns
 * how many there were. */
int tree_signal_who_heeds(struct tree *tree, pid_t root, int signal);

#endif
