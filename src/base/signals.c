#include "base/signals.h"

#include <signal.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

void signals_reset(void)
{
    const unsigned long by_default[4] = {0}; /* the kernel's struct sigaction, or more */
    sigset_t none;

    /* The C library would not touch its own two, which posix_spawn() leaves ignored. Nothing is to be done for SIGKILL
     * and SIGSTOP. */
    for (int i = 1; i <= SIGRTMAX; i++)
        syscall(SYS_rt_sigaction, i, by_default, NULL, _NSIG / 8);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}
