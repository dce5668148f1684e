/* The errors that end a program, as far as its output shows them. They are the last line of a Python traceback, a
 * panic, an uncaught C++ exception, a crash. Pure. */
#ifndef CARMA_LAUNCH_ENDS_H
#define CARMA_LAUNCH_ENDS_H

#include <stdbool.h>
#include <stddef.h>

#include "launch/sizes.h"

enum end_weight {
    END_NONE,
    END_LIKELY, /* an error that may be a consequence of the one before */
    END_CERTAIN /* a plain bug: KeyError, NameError, ... */
};

/* All zero: at the beginning of a text. */
struct ends {
    bool memory, marked; /* the line has a message of its own, one of ends_words: to be said before ends_take */
    bool in_traceback;
    bool chained;  /* the next error came of handling the one before */
    bool harmless; /* the next traceback is of an error that ended nothing */
    bool panic;    /* the next line is the message of a Rust program's panic */
    bool source;   /* the next line shows source, in column + 2 */
    size_t column; /* where the traceback's lines begin, behind a rank's name or a time */
    size_t source_column;
};

/* In lower case. */
extern const char *const ends_words[];

/* Whether the line shows source code, and says nothing of itself. Before ends_take of the same line. */
bool ends_is_source(struct ends *ends, struct span line);

enum end_weight ends_take(struct ends *ends, struct span line);

#endif
