/* Xids: the numbers by which NVIDIA's driver tells of errors of a GPU. */
#ifndef CARMA_BASE_XID_H
#define CARMA_BASE_XID_H

#include <stdbool.h>
#include <stdint.h>

/* Whether it is the GPU's own failure rather than an application's. 0, not an Xid, is neither. */
bool xid_is_hardware(uint32_t xid);

const char *xid_text(uint32_t xid); /* a few words on its meaning; "" where unknown */

/* Whether `next`, reported after `previous`, is a mere consequence of it. After a GPU's failure the driver cleans up
 * after the applications there, and reports that under their numbers. */
bool xid_follows(uint32_t next, int64_t next_ns, uint32_t previous, int64_t previous_ns);

#endif
