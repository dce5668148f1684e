#include "estimate/program/program.h"

#include <string.h>

#include "base/digest.h"
#include "base/memory.h"

void program_init(struct program *program)
{
    *program = (struct program){0};
    program_label(program, "");
}

void program_release(struct program *program)
{
    for (size_t i = 0; i < program->label_count; i++)
        free(program->labels[i]);
    free(program->labels);
    free(program->label_slots);
    free(program->events);
    free(program->convs);
    *program = (struct program){0};
}

/* The slot that holds the text's number, or the free one where it belongs. */
static uint32_t *slot_of(struct program *program, const char *text)
{
    size_t mask = program->label_slot_count - 1;

    for (size_t i = digest_of_text(text) & mask;; i = (i + 1) & mask) {
        uint32_t label = program->label_slots[i];
        if (!label || strcmp(program->labels[label], text) == 0)
            return &program->label_slots[i];
    }
}

static void grow_slots(struct program *program)
{
    free(program->label_slots);
    program->label_slot_count = program->label_slot_count ? program->label_slot_count * 2 : 64;
    program->label_slots = xcalloc(program->label_slot_count, sizeof *program->label_slots);
    for (size_t i = 1; i < program->label_count; i++)
        *slot_of(program, program->labels[i]) = (uint32_t)i;
}

uint32_t program_label(struct program *program, const char *text)
{
    uint32_t *slot = NULL;

    if (*text || !program->label_count) {
        if (program->label_count * 2 >= program->label_slot_count)
            grow_slots(program);
        slot = slot_of(program, text);
        if (!*slot) {
            array_reserve(program->labels, program->label_capacity, program->label_count + 1);
            program->labels[program->label_count] = xstrdup(text);
            *slot = (uint32_t)program->label_count++;
        }
    }
    return slot ? *slot : 0;
}

static struct program_event *append(struct program *program, enum program_op op, struct program_event event)
{
    array_reserve(program->events, program->event_capacity, program->event_count + 1);
    event.op = op;
    program->events[program->event_count] = event;
    return &program->events[program->event_count++];
}

uint32_t program_alloc(struct program *program, struct program_event event)
{
    if (event.category >= MEMORY_CATEGORY_COUNT)
        event.category = MEMORY_TEMPORARY;
    event.tensor = program->tensor_count++;
    event.bytes = event.bytes < 0 ? 0 : event.bytes > PROGRAM_MAX_BYTES ? PROGRAM_MAX_BYTES : event.bytes;
    append(program, PROGRAM_ALLOC, event);
    return event.tensor;
}

void program_free(struct program *program, uint32_t tensor, struct program_event event)
{
    if (tensor >= program->tensor_count)
        return;
    event.tensor = tensor;
    event.bytes = 0;
    append(program, PROGRAM_FREE, event);
}

void program_conv(struct program *program, const struct program_conv *conv, struct program_event event)
{
    if (conv->pass > CONV_BACKWARD_WEIGHT || conv->rank > array_size(conv->kernel))
        return;
    array_reserve(program->convs, program->conv_capacity, program->conv_count + 1);
    program->convs[program->conv_count] = *conv;
    program->convs[program->conv_count].step = event.step;
    event.tensor = (uint32_t)program->conv_count++;
    event.bytes = 0;
    event.category = MEMORY_WORKSPACE;
    append(program, PROGRAM_CONV, event);
}

void program_empty_cache(struct program *program, struct program_event event)
{
    event.tensor = 0;
    event.bytes = 0;
    append(program, PROGRAM_EMPTY, event);
}

uint8_t program_steady_step(const struct program *program)
{
    uint8_t last = 0;

    for (size_t i = 0; i < program->event_count && last < 2; i++)
        last = program->events[i].step;
    return last;
}
