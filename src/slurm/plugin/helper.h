/* carma-slurm-step (src/slurm/step), which does the plugin's work in a process of its own: it speaks to carmad and
 * keeps the spool. A conversation over a socket, in lines. The plugin says NAME=VALUE, in blocks that a blank line
 * ends: first what Slurm says of the step, then, where a task starts, that task. The helper answers with its own name
 * and HELPER_VERSION, and then what is to be done:
 *
 *     set NAME=VALUE, unset NAME    in the task's environment
 *     error TEXT, debug TEXT        a line of Slurm's log
 *     count                         ask slurmctld (record.h), and say another block
 *     end 0, end 1                  the last line; 1: the task must not start */
#ifndef CARMA_SLURM_PLUGIN_HELPER_H
#define CARMA_SLURM_PLUGIN_HELPER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define HELPER_NAME    "carma-slurm-step"
#define HELPER_VERSION "1" /* of the lines above: its second argument, and of its answer the second word */

enum { HELPER_LINE_BYTES = 8192 };

struct helper {
    int fd;    /* -1: there is none */
    int pidfd; /* -1: the kernel has none */
    pid_t pid, parent;
    bool greeted;
    const char *fault; /* why it is of no use, in words that follow its path */
    bool lost;         /* it was killed or has crashed: another may do */
    size_t begin, length;
    char bytes[HELPER_LINE_BYTES];
};

extern char helper_path[]; /* "" until it was looked for */

/* Starts it from beside this plugin's own folder, as this process's user, with nothing of its environment, descriptors
 * and signals. false: it cannot be. `verb` says for what: main.c of src/slurm/step. */
bool helper_start(struct helper *helper, const char *verb);

/* Says a block, or blocks. What cannot be said is found by helper_hear(). */
void helper_say(struct helper *helper, const char *text, size_t length);

/* The next line after the greeting, or NULL with a fault: it was not there at the deadline, it has ended, ... */
const char *helper_hear(struct helper *helper, int64_t deadline_ms);

/* Lets it go: one that still works, or hangs, is killed where `kill`; else it finds that nobody listens. */
void helper_leave(struct helper *helper, bool kill);

int64_t helper_now_ms(void); /* monotonic */

/* Reads from another process into room for `size` bytes: their number, 0 at its end, -ETIMEDOUT at the deadline. */
ssize_t helper_read(int fd, void *bytes, size_t size, int64_t deadline_ms);

#endif
