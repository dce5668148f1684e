/* Processes as /proc shows them. A process is identified by pid and start time: pids are reused. */
#ifndef CARMA_BASE_PROC_H
#define CARMA_BASE_PROC_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct proc_stat {
    pid_t parent;
    pid_t session;
    char state;           /* of its main thread: 'R', 'S', 'Z', ... */
    bool ended;           /* a zombie; not one of which only the main thread has ended */
    uint64_t start_ticks; /* clock ticks after boot (proc(5), field 22) */
};

/* 0, or a negative errno (-ENOENT, -ESRCH: no such process). Allocates nothing. */
int proc_read_stat(pid_t pid, struct proc_stat *stat);

/* The real user. 0, or a negative errno. -ENOENT: no such process; the number may be that of a thread. */
int proc_read_uid(pid_t pid, uid_t *uid);

/* The boot of the machine to which all pids belong: its boot_id; "": not known. */
#define PROC_BOOT 40
const char *proc_boot(void);

/* Whether the signal is in the set that a text of /proc/PID/status shows behind `key`, such as "\nSigPnd:". */
bool proc_shows_signal(const char *status, const char *key, int signal);

/* Whether the process that had this start time still runs (one that has `ended` does not). */
bool proc_alive(pid_t pid, uint64_t start_ticks);

#endif
