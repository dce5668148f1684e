/* Shared by the harness and the library that it preloads (fail.c): one mapped file, $CARMA_FAULT. harness.py packs the
 * same layout. */
#ifndef CARMA_TESTS_FAULT_FAIL_H
#define CARMA_TESTS_FAULT_FAIL_H

#include <stdint.h>

#define FAIL_SLOTS 4

enum fail_when { FAIL_BEFORE, FAIL_AFTER };

/* A fault at a point: a call by a program, maybe on certain files. */
struct fail_slot {
    uint32_t armed; /* set last, cleared first */
    uint32_t when;  /* enum fail_when; an error is always in the call's place */
    int32_t skip;   /* this many calls are let through first; counted down by all processes together */
    int32_t times;  /* then this many are hit */
    int32_t error;  /* 0: the process kills itself; < 0: it waits this many milliseconds; else the call fails with it */
    uint32_t hits;
    char program[24]; /* "carmad"; "carmad+": a child that it forked, until that executes another program */
    char call[24];
    char file[48]; /* a part of the path that the call is about; "": any */
};

struct fail_control {
    int64_t clock_ns; /* added to CLOCK_REALTIME */
    struct fail_slot slots[FAIL_SLOTS];
};

#endif
