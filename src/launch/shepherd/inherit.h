/* Attributes that a job would inherit from the daemon by accident: put right in its process, before it becomes its
 * user. */
#ifndef CARMA_LAUNCH_SHEPHERD_INHERIT_H
#define CARMA_LAUNCH_SHEPHERD_INHERIT_H

/* The order in which a host that is out of memory kills (proc(5), oom_score_adj): a job this much sooner than the
 * daemon. */
#define INHERIT_OOM_SCORE_ADJ 200

/* The job is a likelier victim of a host without memory than the daemon, and than the other processes. Where root
 * starts it, moreover: umask 022, niceness 0, and, as a login gives them, no core dumps and 1024 open files. Both go up
 * to the hard limits, which stay the daemon's as all other limits do: PAM's settings for the user are not known here. A
 * user's own daemon hands on the limits that the user gave it. */
void inherit_reset(void);

#endif
