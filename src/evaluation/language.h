/* Language models as Hugging Face's transformers (about 4.44, the time of PyTorch 2.4) builds and trains them: BERT
 * with its masked-word head, GPT-2, XLNet. From the published configurations and the library's documented behaviour. */
#ifndef CARMA_EVALUATION_LANGUAGE_H
#define CARMA_EVALUATION_LANGUAGE_H

#include "evaluation/network.h"

struct language_model {
    int64_t layers, width, inner, heads, words, length;
    int64_t gpus; /* more than one: by torch.nn.DataParallel; the list is the first one's */
};

/* Inits *list. False: the name `model` begins like no known architecture's; the list is then empty. */
bool language_build(struct layer_list *list, const char *model, const struct language_model *language,
                    const struct csv *csv, struct error *err);

#endif
