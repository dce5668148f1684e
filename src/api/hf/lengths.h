/* The text of a list of samples' lengths: a line each, in tokens, or a length and how many samples have it. */
#ifndef CARMA_API_HF_LENGTHS_H
#define CARMA_API_HF_LENGTHS_H

#include "base/error.h"
#include "estimate/transformer/lengths.h"

/* Inits *lengths, which has at least one and which lengths_release() ends. -EINVAL with one line ("FILE:LINE: ..."):
 * *lengths is empty. */
int hf_lengths_read(struct lengths *lengths, const char *name, const char *text, struct error *err);

#endif
