#include "cli/attach/signals.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <unistd.h>

#include "base/memory.h"

static int come = -1;

static void on_signal(int number)
{
    int was = errno;
    ssize_t ignored = write(come, &(char){(char)number}, 1); /* a full pipe has others of its kind */

    (void)ignored;
    errno = was;
}

/* Without SA_RESTART: a write to a reader that does not read ends. */
int signals_open(void)
{
    static const int taken[] = {SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGHUP, SIGWINCH};
    struct sigaction action = {.sa_handler = on_signal}, now;
    int ends[2];

    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
        return -errno;
    come = ends[1];
    for (size_t i = 0; i < array_size(taken); i++)
        if (sigaction(taken[i], NULL, &now) == 0 && now.sa_handler != SIG_IGN)
            sigaction(taken[i], &action, NULL);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGTTIN, SIG_IGN);
    signal(SIGTTOU, SIG_IGN);
    return ends[0];
}

int signals_next(int signals)
{
    char number;

    return read(signals, &number, 1) == 1 ? number : 0;
}
