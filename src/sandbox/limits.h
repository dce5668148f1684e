/* Limits of every run, beside those that its request sets. */
#ifndef CARMA_SANDBOX_LIMITS_H
#define CARMA_SANDBOX_LIMITS_H

#define LIMIT_PROCESSES                                                                                                \
    512 /* threads among them: a data loader's workers, and libraries' threads on large machines                       \
         */
#define LIMIT_FILES  4096
#define LIMIT_LOCKED (8 << 20)

#endif
