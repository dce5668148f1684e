/* What others remove of a running launch is made again: its status, the log, the copy of its script, the FIFO of its
 * progress. The directories of all launches are the daemon's, which looks after them as often (runs_heal). */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/nodetime.h"
#include "base/units.h"
#include "launch/shepherd/script.h"
#include "launch/shepherd/shepherd.h"
#include "launch/spawn_shepherd.h"

#define LOOK_NS (3 * NS_PER_SEC) /* wall */

static bool is_gone(const char *path)
{
    struct stat st;

    return lstat(path, &st) < 0 && errno == ENOENT;
}

/* With the status its directory comes back (status_write). */
static void heal_run_directory(struct shepherd *s)
{
    CLEANUP(free_ptr) char *status = xasprintf("%s/status", s->request.run_directory);
    CLEANUP(free_ptr) char *log = xasprintf("%s/shepherd.log", s->request.run_directory);
    CLEANUP(free_ptr) char *no_mps = xasprintf("%s/" SPAWN_NO_MPS, s->request.run_directory);
    CLEANUP(close_fd) int fd = -1;

    if (is_gone(status))
        shepherd_write_status(s);
    if (is_gone(no_mps))
        mkdir(no_mps, 0700);
    if (is_gone(log) && (fd = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600)) >= 0)
        dup2(fd, STDERR_FILENO);
}

void heal_turn(struct shepherd *s)
{
    int64_t now_ns = nodetime_monotonic_wall_ns();
    struct error err;
    bool healed = true;

    if (now_ns < s->heal_at_ns || s->not_run)
        return;
    s->heal_at_ns = now_ns + LOOK_NS;
    heal_run_directory(s);
    progress_heal(s);
    if (s->request.script && is_gone(s->request.script_words[2]))
        healed = script_write(&s->request, &err) == 0;
    if (!healed && !s->heal_told) /* once, though it is tried again */
        shepherd_complain(&err);
    s->heal_told = !healed;
}
