/* FNV-1a with 64 bits: a short name for a longer text, which others can compute as well. It protects from nobody. */
#ifndef CARMA_BASE_DIGEST_H
#define CARMA_BASE_DIGEST_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define DIGEST_EMPTY UINT64_C(14695981039346656037) /* of nothing */

static inline uint64_t digest_add(uint64_t digest, const void *bytes, size_t count)
{
    for (const unsigned char *at = bytes; count; count--)
        digest = (digest ^ *at++) * UINT64_C(1099511628211);
    return digest;
}

static inline uint64_t digest_of_text(const char *text)
{
    return digest_add(DIGEST_EMPTY, text, strlen(text));
}

#endif
