/* A reading for people's eyes: what `carma-monitor --text` prints. */
#ifndef CARMA_GPU_TABLE_H
#define CARMA_GPU_TABLE_H

#include "base/strbuf.h"
#include "gpu/reading.h"

/* Appends a header and one line for each GPU ("-" for what the driver does not tell), each followed by a line for each
 * listed process. */
void gpu_table_format(const struct gpu_node_reading *reading, struct strbuf *out);

#endif
