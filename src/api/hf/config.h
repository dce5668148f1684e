/* The config.json of Hugging Face's Transformers: the sizes of a model of a known family. */
#ifndef CARMA_API_HF_CONFIG_H
#define CARMA_API_HF_CONFIG_H

#include <stddef.h>

#include "base/error.h"
#include "estimate/transformer/transformer.h"

/* `name` is the file's, for messages. A size that the text leaves out has its family's default. -EINVAL: no such
 * configuration, or a family that is not known; one line. Fills *transformer wholly. */
int hf_config_read(struct transformer *transformer, const char *name, const char *text, size_t length,
                   struct error *err);

#endif
