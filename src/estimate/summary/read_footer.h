/* The totals under a summary's table, and whether the rows agree with them. Internal to read*.c. */
#ifndef CARMA_ESTIMATE_READ_FOOTER_H
#define CARMA_ESTIMATE_READ_FOOTER_H

#include "estimate/summary/read_text.h"

/* A number as printed: the truth lies within value -+ slack. */
struct footer_value {
    double value, slack;
    uint32_t line; /* 0: not there */
};

enum footer_count { FOOTER_TOTAL, FOOTER_TRAINABLE, FOOTER_NON_TRAINABLE, FOOTER_OPTIMIZER, FOOTER_COUNT_COUNT };
enum footer_size { FOOTER_INPUT, FOOTER_PASS, FOOTER_PARAMETERS, FOOTER_SUM, FOOTER_SIZE_COUNT };

struct footer {
    struct footer_value counts[FOOTER_COUNT_COUNT]; /* parameters */
    struct footer_value sizes[FOOTER_SIZE_COUNT];   /* bytes */
    struct footer_value operations;                 /* multiply-adds */
};

/* Reads the line at hand where it is one of a footer's ("Total params: 9,408", "Input size (MB): 0.57"): 1; 0: it is
 * not; -EINVAL with err set. `megabyte`: the format's MB, 1e6 or 1048576 bytes (kB and GB accordingly). */
int footer_read_line(struct footer *footer, const struct reader *reader, double megabyte);

/* -EBADMSG with err set where the footer contradicts itself. */
int footer_check(const struct footer *footer, const struct reader *reader);

/* The same where `parameters`, the rows' sum, is not the total without the optimizer's. */
int footer_check_rows(const struct footer *footer, const struct reader *reader, int64_t parameters);

/* Its totals as the list's. Where only they say that some parameters are not trained, the first layers that have just
 * that many are frozen (the usual way to freeze). Where no layers have, there is a warning. `buffers`: number of
 * untrained values that are not a layer's parameters here (Keras counts running statistics). */
void footer_apply(const struct footer *footer, struct reader *reader, int64_t buffers);

#endif
