/* A fuzz target: one function that must come back, for all bytes. libFuzzer drives it where the compiler is clang,
 * driver.c elsewhere. */
#ifndef CARMA_TESTS_FUZZ_H
#define CARMA_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/error.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

/* assert() that no build option removes */
#define require(condition) ((condition) ? (void)0 : abort())

/* One line, fit for a terminal. */
static inline void require_message(const struct error *err)
{
    require(*err->text);
    for (const char *c = err->text; *c; c++)
        require(*c == '\t' || ((unsigned char)*c >= 0x20 && *c != 0x7f));
}

#endif
