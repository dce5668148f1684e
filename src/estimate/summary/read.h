/* Reads a model summary: torchsummary, torchinfo, Keras 2 and 3. One file per format; the format is found by looking.
 * Pure: works on text in memory. */
#ifndef CARMA_ESTIMATE_READ_H
#define CARMA_ESTIMATE_READ_H

#include "base/error.h"
#include "estimate/layers.h"

enum summary_format { SUMMARY_TORCHSUMMARY, SUMMARY_TORCHINFO, SUMMARY_KERAS2, SUMMARY_KERAS3, SUMMARY_FORMAT_COUNT };
const char *summary_format_name(enum summary_format format);

#define SUMMARY_MAX_BYTES    ((size_t)8 << 20)
#define SUMMARY_MAX_WARNINGS 8

struct summary {
    struct layer_list layers;
    enum summary_format format;
    /* Each one line "FILE:LINE: ..." for the user: an unknown layer type, an assumption, a gap of the summary. Totals
     * that contradict the rows are an error, not a warning. */
    char warnings[SUMMARY_MAX_WARNINGS][160];
    size_t warning_count; /* may be more than are kept */
};

/* Inits *summary. -EINVAL with one line "FILE:LINE: the fault" (truncated, no known format, too large), -EBADMSG where
 * it contradicts its own totals; *summary is then empty. `name` is the file's name in messages.
 * docs/formats/summary.md. */
int summary_read(struct summary *summary, const char *name, const char *text, size_t length, struct error *err);
void summary_release(struct summary *summary);

#endif
