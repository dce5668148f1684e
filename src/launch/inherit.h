/* What a job would have of the daemon's without meaning to: put right in its process, before it becomes its user. */
#ifndef CARMA_LAUNCH_INHERIT_H
#define CARMA_LAUNCH_INHERIT_H

/* What a host that is out of memory kills first (proc(5), oom_score_adj): so much rather a job than the daemon. */
#define INHERIT_OOM_SCORE_ADJ 200

/* The job is a likelier victim of a host without memory than the daemon, and than what else is there. Where root starts it,
 * moreover: umask 022, niceness 0, and, as a login gives them, no core dumps and 1024 open files, both up to the hard limits, which
 * stay the daemon's as all other limits do: what PAM would set for the user is not known here. A user's own daemon hands
 * on what that user gave it. */
void inherit_reset(void);

#endif
