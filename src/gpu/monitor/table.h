/* A reading for people's eyes: the output of `carma-monitor --text`. */
#ifndef CARMA_GPU_MONITOR_TABLE_H
#define CARMA_GPU_MONITOR_TABLE_H

#include "base/strbuf.h"
#include "gpu/reading.h"

/* Appends a header and one line for each GPU. "-" stands for values that the driver does not tell; an instance's GPU is
 * "0/3": of GPU 0, GPU instance 3. Each is followed by a line with its metrics and their sources, and a line for each
 * listed process. At the end come the metrics that cannot be measured. */
void gpu_table_format(const struct gpu_node_reading *reading, struct strbuf *out);

#endif
