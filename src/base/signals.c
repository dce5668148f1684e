#include "base/signals.h"

#include <signal.h>
#include <stddef.h>

void signals_reset(void)
{
    sigset_t none;

    for (int i = 1; i <= SIGRTMAX; i++)
        signal(i, SIG_DFL); /* fails for SIGKILL, SIGSTOP and the C library's own: nothing to reset there */
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}
