#include "estimate/program/replay.h"

#include <string.h>

#include "base/memory.h"
#include "estimate/program/allocator.h"

struct replay {
    struct allocator allocator;
    struct tensor {
        uint32_t block; /* NO_BLOCK: it has none */
        uint8_t category;
        int64_t bytes;
    } * tensors;
    int64_t allocated[MEMORY_CATEGORY_COUNT];
    int64_t peak_bytes, tensor_bytes;
    struct replay_result *result;
};

/* PyTorch asks cuDNN for another plan where a workspace does not fit: so the replay goes on. */
static uint32_t take(struct replay *replay, const struct program_event *event, int64_t bytes, size_t number)
{
    uint32_t block = NO_BLOCK;

    if (bytes > 0)
        block = event->op == PROGRAM_CONV ? allocator_try(&replay->allocator, bytes)
                                          : allocator_take(&replay->allocator, bytes);
    if (block == NO_BLOCK)
        return block;
    replay->allocated[event->category] += bytes;
    replay->tensor_bytes += bytes;
    if (replay->tensor_bytes > replay->result->peak_tensor_bytes)
        replay->result->peak_tensor_bytes = replay->tensor_bytes;
    if (replay->allocator.peak_allocated_bytes > replay->peak_bytes) {
        replay->peak_bytes = replay->allocator.peak_allocated_bytes;
        memcpy(replay->result->at_peak, replay->allocated, sizeof replay->allocated);
        replay->result->peak_event = (uint32_t)number;
    }
    return block;
}

static void give(struct replay *replay, uint32_t block, int64_t bytes, uint8_t category)
{
    if (block == NO_BLOCK)
        return;
    allocator_give(&replay->allocator, block);
    replay->allocated[category] -= bytes;
    replay->tensor_bytes -= bytes;
}

static void step(struct replay *replay, const struct program *program, const struct workspace_rule *rule, size_t i)
{
    const struct program_event *event = &program->events[i];

    if (event->op == PROGRAM_ALLOC) {
        replay->tensors[event->tensor] =
            (struct tensor){take(replay, event, event->bytes, i), event->category, event->bytes};
    } else if (event->op == PROGRAM_FREE) {
        struct tensor *tensor = &replay->tensors[event->tensor];
        give(replay, tensor->block, tensor->bytes, tensor->category);
        tensor->block = NO_BLOCK;
    } else if (event->op == PROGRAM_EMPTY) {
        allocator_empty_cache(&replay->allocator);
    } else {
        const struct program_conv *conv = &program->convs[event->tensor];
        int64_t bytes = conv_workspace_bytes(conv, rule->algorithm[conv->pass][conv_workspace_class(conv)]);
        give(replay, take(replay, event, bytes, i), bytes, MEMORY_WORKSPACE);
    }
}

void program_replay(const struct program *program, const struct replay_options *options, struct replay_result *result)
{
    struct replay replay = {.result = result};

    *result = (struct replay_result){0};
    allocator_init(&replay.allocator, program->allocator.most_permille
                                          ? options->limit_bytes / 1000 * program->allocator.most_permille
                                          : options->limit_bytes);
    replay.allocator.settings = program->allocator;
    replay.tensors = xcalloc(program->tensor_count, sizeof *replay.tensors);
    for (size_t i = 0; i < program->tensor_count; i++)
        replay.tensors[i].block = NO_BLOCK;
    for (size_t i = 0; i < program->event_count; i++)
        step(&replay, program, &options->rule, i);
    result->held_tensor_bytes = replay.tensor_bytes;
    result->peak_reserved_bytes = replay.allocator.peak_reserved_bytes;
    result->peak_allocated_bytes = replay.allocator.peak_allocated_bytes;
    result->out_of_memory = replay.allocator.out_of_memory;
    result->segments_released = replay.allocator.segments_released;
    free(replay.tensors);
    allocator_release(&replay.allocator);
}
