/* Usage: bench-timm timm:FILE CAPTURES (as in `carma evaluate --dataset`). For each row with a capture and each
 * training set-up that it may have been measured with, as CSV in MiB: what was measured, the replay's best guess, what
 * the allocator reserved, the most that tensors took at once, and the context. bench/timm reads it. */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/units.h"
#include "estimate/estimate.h"
#include "evaluation/dataset.h"

struct setup {
    const char *name;
    enum optimizer optimizer;
    bool weight_decay;
    uint8_t steps; /* the first of them alone, or all */
};

static const struct setup setups[] = {
    {"sgd", OPTIMIZER_SGD, false, UINT8_MAX},
    {"sgd, weight decay", OPTIMIZER_SGD, true, UINT8_MAX},
    {"momentum", OPTIMIZER_MOMENTUM, false, UINT8_MAX},
    {"momentum, weight decay", OPTIMIZER_MOMENTUM, true, UINT8_MAX},
    {"momentum, weight decay, one step", OPTIMIZER_MOMENTUM, true, 1},
    {"adam", OPTIMIZER_ADAM, false, UINT8_MAX},
    {"adam, weight decay", OPTIMIZER_ADAM, true, UINT8_MAX},
    {"adam, one step", OPTIMIZER_ADAM, false, 1},
};

static size_t events_of(const struct program *program, uint8_t steps)
{
    size_t count = 0;

    while (count < program->event_count && program->events[count].step <= steps)
        count++;
    return count;
}

/* The most that tensors have at once in the first step's forward and backward pass, workspaces left out: what the
 * published figures of fake tensors count. */
static int64_t tensors_of(const struct program *program)
{
    CLEANUP(free_ptr) int64_t *bytes = xcalloc((size_t)program->tensor_count + 1, sizeof *bytes);
    int64_t now = 0, most = 0;

    for (size_t i = 0; i < program->event_count && program->events[i].step <= 1; i++) {
        const struct program_event *event = &program->events[i];
        if (event->phase == PHASE_OPTIMIZER)
            break;
        if (event->op == PROGRAM_ALLOC && event->category != MEMORY_WORKSPACE) {
            now += bytes[event->tensor] = event->bytes;
        } else if (event->op == PROGRAM_FREE) {
            now -= bytes[event->tensor];
        }
        if (now > most)
            most = now;
    }
    return most;
}

/* The images come first. */
static int64_t input_of(const struct program *program)
{
    for (size_t i = 0; i < program->event_count; i++)
        if (program->events[i].op == PROGRAM_ALLOC && program->events[i].step == 1)
            return program->events[i].bytes;
    return 0;
}

static double mib(int64_t bytes)
{
    return (double)bytes / (double)MIB;
}

static int print_row(const struct dataset *dataset, const struct dataset_row *row, const struct setup *setup,
                     struct error *err)
{
    struct estimate_question question = {.capture = row->capture,
                                         .training = row->training,
                                         .profile = dataset->profile,
                                         .declared_bytes = -1,
                                         .quantile_permille = 980,
                                         .fold = -1};
    struct program *program = &row->capture->program;
    struct estimate estimated;
    int64_t allocated = 0;
    size_t events;
    int rc = capture_set_optimizer(row->capture, setup->optimizer, setup->weight_decay, err);

    if (rc)
        return rc;
    question.training.optimizer = setup->optimizer;
    question.training.weight_decay = setup->weight_decay;
    events = program->event_count;
    program->event_count = events_of(program, setup->steps);
    rc = estimate(&estimator_replay, &question, &estimated, err);
    program->event_count = events;
    if (rc)
        return rc;
    for (int i = 0; i < MEMORY_CATEGORY_COUNT; i++)
        allocated += estimated.parts[i];
    printf("%s,\"%s\",%d,%.1f,%.1f,%.1f,%.1f,%.1f,%.1f,%.1f,%.1f,%.3f,%.1f\n", row->name, setup->name,
           row->out_of_memory, mib(row->measured_bytes), mib(estimated.median_bytes),
           mib(estimated.median_bytes - estimated.context_bytes - estimated.correction_bytes), mib(allocated),
           mib(estimated.context_bytes), mib(program->parameter_bytes), mib(tensors_of(program)),
           mib(row->published[1]), mib(input_of(program)), mib(program->activation_elements * 4));
    return 0;
}

int main(int argc, char **argv)
{
    CLEANUP(dataset_release) struct dataset dataset = {0};
    struct error err;

    if (argc != 3) {
        fprintf(stderr, "usage: bench-timm timm:FILE CAPTURES\n");
        return 2;
    }
    if (dataset_read(&dataset, argv[1], argv[2], &err)) {
        fprintf(stderr, "bench-timm: %s\n", err.text);
        return 1;
    }
    printf("name,setup,out_of_memory,measured,median,reserved,allocated,context,parameters,tensors,"
           "faketensor,input,activations\n");
    for (size_t i = 0; i < dataset.count; i++)
        for (size_t k = 0; k < array_size(setups); k++)
            if (print_row(&dataset, &dataset.rows[i], &setups[k], &err)) {
                fprintf(stderr, "bench-timm: %s: %s\n", dataset.rows[i].name, err.text);
                return 1;
            }
    return 0;
}
