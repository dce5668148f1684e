/* Programs that tell somebody something: run for a bounded time, fed from memory, their output kept as one line. */
#ifndef CARMA_NOTIFY_RUN_H
#define CARMA_NOTIFY_RUN_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define RUN_LINE 256

struct run {
    char *const *argv; /* argv[0] is looked for in PATH */
    const char *input; /* its standard input */
    const char *more;  /* its descriptor 3; NULL: it has none */
    int64_t most_ns;   /* wall time, then it is killed */
};

/* 0: it ended with 0. A negative errno: it did not, and err says how, with the last line that it wrote. */
int run_program(const struct run *run, struct error *err);

#endif
