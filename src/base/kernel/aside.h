/* Questions that the kernel may never answer. It reads a process's command line, environment and mappings
 * (/proc/PID/cmdline, environ, maps, ...) under the lock of its memory. One of the process's threads may hold the
 * lock for ever, for example in mmap(2) of a file whose server is dead. So a child process asks, and carma kills it
 * where that takes too long. */
#ifndef CARMA_BASE_KERNEL_ASIDE_H
#define CARMA_BASE_KERNEL_ASIDE_H

/* What the child has written to `fd` in `question`; owned by the caller. NULL: it was not done in `limit_ms`. Waits for
 * so long: not for carmad's loop. */
char *aside_ask(void (*question)(const void *user, int fd), const void *user, int limit_ms);

#endif
