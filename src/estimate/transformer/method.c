#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include <stddef.h>

#include "base/memory.h"
#include "base/text/nearest.h"
#include "base/units.h"
#include "estimate/transformer/transformer.h"

#define NUMBER_MAX 1000000

void method_default(struct method *method)
{
    *method = (struct method){.rank = RANK_DEFAULT, .accumulation = 1, .sequence = SEQUENCE_DEFAULT};
}

static bool take_number(const char *word, const char *name, int64_t *number)
{
    size_t length = strlen(name);

    return strncmp(word, name, length) == 0 && parse_integer(word + length, 1, NUMBER_MAX, number, NULL) == 0;
}

static bool take_word(const char *word, struct method *method)
{
    static const struct {
        const char *name;
        size_t offset;
        uint8_t value;
    } words[] = {
        {"full", offsetof(struct method, tuning), TUNING_FULL},
        {"lora", offsetof(struct method, tuning), TUNING_LORA},
        {"qlora", offsetof(struct method, tuning), TUNING_QLORA},
        {"checkpointing", offsetof(struct method, checkpointing), true},
        {"eager", offsetof(struct method, eager), true},
        {"adapter_bf16", offsetof(struct method, adapter_bf16), true},
        {"chunked_loss", offsetof(struct method, chunked_loss), true},
        {"contiguous", offsetof(struct method, contiguous), true},
        {"drop_longer", offsetof(struct method, drop_longer), true},
        {"half_loss", offsetof(struct method, half_loss), true},
        {"held_logits", offsetof(struct method, held_logits), true},
        {"kept_output", offsetof(struct method, kept_output), true},
        {"repeated_heads", offsetof(struct method, repeated_heads), true},
        {"adapter_dropout", offsetof(struct method, adapter_dropout), true},
        {"targets=qv", offsetof(struct method, targets), TARGETS_QV},
        {"targets=attention", offsetof(struct method, targets), TARGETS_ATTENTION},
        {"targets=all", offsetof(struct method, targets), TARGETS_ALL},
        {"zero1", offsetof(struct method, sharding), SHARDING_ZERO1},
        {"zero2", offsetof(struct method, sharding), SHARDING_ZERO2},
        {"zero3", offsetof(struct method, sharding), SHARDING_ZERO3},
        {"fsdp", offsetof(struct method, sharding), SHARDING_FSDP},
    };

    for (size_t i = 0; i < array_size(words); i++) {
        if (strcmp(word, words[i].name) != 0)
            continue;
        memcpy((char *)method + words[i].offset, &words[i].value, 1);
        return true;
    }
    return take_number(word, "rank=", &method->rank) || take_number(word, "accumulate=", &method->accumulation) ||
           take_number(word, "mean_length=", &method->mean_length) || take_number(word, "world=", &method->world);
}

int method_parse(const char *text, struct method *method, struct error *err)
{
    CLEANUP(free_ptr) char *words = xstrdup(text);
    char *rest = NULL;

    for (char *word = strtok_r(words, ",", &rest); word; word = strtok_r(NULL, ",", &rest))
        if (!take_word(word, method))
            return nearest_refuse(err, "training method", word, METHOD_TEXT);
    return 0;
}

static int too_large(const char *what, struct error *err)
{
    return error_set(err, EINVAL, "%s would take more than %" PRId64 " GiB: check the configuration and the batch size",
                     what, PROGRAM_MAX_BYTES >> 30);
}

int transformer_check(const struct transformer *t, const struct training *training, const struct method *method,
                      struct error *err)
{
    double length = t->kind == TRANSFORMER_VISION
                        ? (double)(t->image / t->patch) * (double)(t->image / t->patch) + (double)t->specials
                        : (double)method->sequence;
    double tokens = length * (double)training->batch_size, heads = (double)t->heads * (double)t->head_width;
    double widest = (double)t->vocabulary;
    const double widths[] = {(double)t->width, (double)t->inner, 3 * heads, (double)t->embedding_width};
    double most = (double)PROGRAM_MAX_BYTES / 8;

    if (t->kind != TRANSFORMER_VISION && t->positions && method->sequence > t->positions)
        return error_set(err, EINVAL, "a sequence of %" PRId64 " tokens is more than the model's %" PRId64 " positions",
                         method->sequence, t->positions);
    for (size_t i = 0; i < array_size(widths); i++)
        widest = widths[i] > widest ? widths[i] : widest;
    for (size_t i = 0; i < array_size(widths); i++)
        if (widths[i] * (double)t->width > most || widths[i] * (double)t->vocabulary > most)
            return too_large("a matrix of the model", err);
    if (tokens * widest > most || tokens * (double)t->heads * length > most || length * length > most ||
        (double)training->batch_size * (double)t->channels * (double)t->image * (double)t->image > most)
        return too_large("an activation", err);
    return 0;
}
