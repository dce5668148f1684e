/* Memory of a sandbox that belongs to no process: pages of shared mappings without a file, which stay when a process
 * lets go of them, and what waits in sockets. Both as the most that there can be. */
#ifndef CARMA_SANDBOX_UNOWNED_H
#define CARMA_SANDBOX_UNOWNED_H

#include <stdint.h>

/* In inside.c and filter.c no socket gets larger buffers than this. */
#define UNOWNED_TCP_BYTES    (1 << 20) /* in each direction: the largest of tcp_rmem and tcp_wmem */
#define UNOWNED_SOCKET_BYTES (1 << 19) /* others: net.core.rmem_default and wmem_default are 212,992 (socket(7)) */

/* `proc`: the sandbox's /proc, opened. It may wait for a process that changes its mappings. */
int64_t unowned_bytes(int proc);

#endif
