/* How far a job has come, by its own words. These are the progress bars of tqdm in its output (Lightning, transformers
 * and others use it). Or they are lines "STEP" or "STEP/TOTAL" that it writes to $CARMA_PROGRESS_FILE
 * (docs/formats/progress.md). The bytes are a job's: anything may be in them. */
#ifndef CARMA_LAUNCH_PROGRESS_H
#define CARMA_LAUNCH_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PROGRESS_BARS 4 /* that are told apart, by their totals: of training, of validation, of epochs */

#define PROGRESS_DONE_MOST INT64_C(1000000000000000) /* beyond that the count of all passes begins anew */

struct progress_count {
    int64_t step;  /* of this pass */
    int64_t total; /* steps of a pass; 0: not said */
    int64_t done;  /* steps of all passes that were read */
    int64_t at_ns; /* node time at which this was first read; 0: never. Not the parser's */
};

struct progress_bar {
    struct progress_count count;
    uint64_t moved; /* progress.reading when it last changed; 0: there is no such bar */
};

/* Flat, so that it can go through a pipe. Zero-initialise. */
struct progress {
    uint64_t reading; /* how often something was read */
    bool told;        /* by lines; the bars say nothing any more */
    struct progress_bar line;
    struct progress_bar bars[PROGRESS_BARS];
};

/* Takes in the next piece of an output. Returns how much of it is done with: the rest, a line without its end, is to
 * come again with the next piece. */
size_t progress_read_output(struct progress *progress, const char *text, size_t length);

/* Takes in whole lines that the job wrote to its progress file. */
void progress_read_lines(struct progress *progress, const char *text, size_t length);

/* A part of the output was not read: counts from before say nothing of how much was done since. */
void progress_forget_bars(struct progress *progress);

/* The count to go by: that of the job's lines. Else it is that of a bar that has moved of late and is not full, if
 * there is one, with the largest total. NULL: there is none. */
const struct progress_count *progress_newest(const struct progress *progress);

#endif
