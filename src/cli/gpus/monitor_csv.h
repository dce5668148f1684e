/* Readings as CSV (docs/formats/monitor-csv.md). Pure. */
#ifndef CARMA_CLI_GPUS_MONITOR_CSV_H
#define CARMA_CLI_GPUS_MONITOR_CSV_H

#include "base/strbuf.h"
#include "gpu/reading.h"

void monitor_csv_header(struct strbuf *out);

/* Appends a line for each GPU of the reading. */
void monitor_csv_rows(const struct gpu_node_reading *reading, struct strbuf *out);

#endif
