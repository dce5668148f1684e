/* One reader per format. Each starts after the header line that read.c has found, fills reader->list and stops at the
 * end of the summary; -EINVAL with err set. Internal to read*.c. */
#ifndef CARMA_ESTIMATE_READ_FORMATS_H
#define CARMA_ESTIMATE_READ_FORMATS_H

#include "estimate/summary/read_text.h"

int read_torchsummary(struct reader *reader);
int read_torchinfo(struct reader *reader);
int read_keras2(struct reader *reader);
int read_keras3(struct reader *reader);

/* Attention layers without shown parameters get those of four projections of their width, with biases, 4 E (E + 1), and
 * a warning. Not those that have been counted where they were called first, which a reader marks by this for their
 * heads (and this function clears). */
#define ATTENTION_COUNTED (-1)
void fill_attention(struct reader *reader);

#endif
