/* Usage: carma evaluate --dataset timm:FILE --captures DIR --questions | bench-timm. For each row with a capture and
 * each training set-up that it may have been measured with, prints CSV in MiB. The columns are the measurement, the
 * replay's best guess, the allocator's reserve, the most that tensors took at once, and the context. bench/timm reads
 * it. */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/units.h"
#include "questions.h"
#include "estimate/estimate.h"

struct setup {
    const char *name;
    struct capture_changes changes;
    uint8_t steps; /* the first of them alone, or all */
};

#define ALL UINT8_MAX

/* Optimizer, weight decay, cuDNN's benchmark, prefetch; steps. */
static const struct setup setups[] = {
    {"sgd", {OPTIMIZER_SGD, false, false, false}, ALL},
    {"sgd, weight decay", {OPTIMIZER_SGD, true, false, false}, ALL},
    {"sgd, weight decay, benchmark, prefetch", {OPTIMIZER_SGD, true, true, true}, ALL},
    {"momentum", {OPTIMIZER_MOMENTUM, false, false, false}, ALL},
    {"momentum, weight decay", {OPTIMIZER_MOMENTUM, true, false, false}, ALL},
    {"momentum, weight decay, prefetch", {OPTIMIZER_MOMENTUM, true, false, true}, ALL},
    {"momentum, weight decay, benchmark", {OPTIMIZER_MOMENTUM, true, true, false}, ALL},
    {"momentum, weight decay, benchmark, prefetch", {OPTIMIZER_MOMENTUM, true, true, true}, ALL},
    {"momentum, benchmark, prefetch", {OPTIMIZER_MOMENTUM, false, true, true}, ALL},
    {"the same, one step", {OPTIMIZER_MOMENTUM, true, true, true}, 1},
    {"adam", {OPTIMIZER_ADAM, false, false, false}, ALL},
    {"adam, prefetch", {OPTIMIZER_ADAM, false, false, true}, ALL},
    {"adam, benchmark, prefetch", {OPTIMIZER_ADAM, false, true, true}, ALL},
    {"adam, weight decay", {OPTIMIZER_ADAM, true, false, false}, ALL},
    {"adam, one step", {OPTIMIZER_ADAM, false, false, false}, 1},
};

static size_t events_of(const struct program *program, uint8_t steps)
{
    size_t count = 0;

    while (count < program->event_count && program->events[count].step <= steps)
        count++;
    return count;
}

/* The most memory that tensors have at once in the first step's forward and backward pass, without workspaces. The
 * published figures of fake tensors count this. */
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

static int print_changed(const struct question *asked, const json_t *json, const struct setup *setup,
                         struct capture *capture, struct error *err)
{
    struct estimate_question question = {.capture = capture,
                                         .training = asked->training,
                                         .profile = machine_profile_find("a100-40g-thesis"),
                                         .declared_bytes = -1,
                                         .quantile_permille = 980,
                                         .fold = -1};
    struct program *program = &capture->program;
    struct estimate estimated;
    int64_t allocated = 0, input = input_of(program), tensors = tensors_of(program);
    int rc = capture_change(capture, &setup->changes, err);

    if (rc)
        return rc;
    question.training.optimizer = setup->changes.optimizer;
    question.training.weight_decay = setup->changes.weight_decay;
    program->event_count = events_of(program, setup->steps);
    rc = estimate(&estimator_replay, &question, &estimated, err);
    if (rc)
        return rc;
    for (int i = 0; i < MEMORY_CATEGORY_COUNT; i++)
        allocated += estimated.parts[i];
    printf("%s,\"%s\",%d,%.1f,%.1f,%.1f,%.1f,%.1f,%.1f,%.1f,%.1f,%.3f,%.1f\n", asked->name, setup->name,
           said_number(json, "out_of_memory") > 0, mib(said_number(json, "measured_bytes")),
           mib(estimated.median_bytes),
           mib(estimated.median_bytes - estimated.context_bytes - estimated.correction_bytes), mib(allocated),
           mib(estimated.context_bytes), mib(program->parameter_bytes), mib(tensors),
           mib(said_number(json, "faketensor_bytes")), mib(input), mib(program->activation_elements * 4));
    return 0;
}

/* As recorded: the question's own has been changed already. */
static int read_again(struct capture *capture, const char *path, int64_t batch_size, struct error *err)
{
    CLEANUP(free_ptr) char *text = NULL;
    size_t length;
    int rc = file_read(path, CAPTURE_MAX_BYTES, &text, &length, err);

    return rc ? rc : capture_read(capture, path, text, length, batch_size, err);
}

static int use(struct question *question, const json_t *json, struct error *err)
{
    for (size_t i = 0; question->capture && i < array_size(setups); i++) {
        struct capture capture;
        int rc = read_again(&capture, said_text(json, "capture"), question->training.batch_size, err);
        if (rc == 0) {
            rc = print_changed(question, json, &setups[i], &capture, err);
            capture_release(&capture);
        }
        if (rc) {
            error_prefix(err, "%s", question->name);
            return rc;
        }
    }
    return 0;
}

int main(void)
{
    printf("name,setup,out_of_memory,measured,median,reserved,allocated,context,parameters,tensors,"
           "faketensor,input,activations\n");
    return each_question("bench-timm", use);
}
