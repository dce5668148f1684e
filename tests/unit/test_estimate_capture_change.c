/* A recording changed to another training: its optimizer's allocations, emptied caches, images; the rest stays. */
#include "capture_fixture.h"

/* Parameters of 4000, 800 (frozen), 800 and 40 bytes; recorded with Adam, which leaves `-20` for the second step. */
#define HEAD                                                                                                           \
    "carma-capture 1\ntorch 2.10.0\nmapping cuda\nmodel Net\nbatch 8 scales\noptimizer adam\nprecision fp32\n"         \
    "parameters 5640\nflops 7\nelements 77\ncounts 1 2 3 4 5 6 7\n"                                                    \
    "labels 2\nfc1\nfc2\nconvs 1\nf 4 0 1x 3 64 1 224,200 112,100 7,5 2,2 3,2 1,1\n"
#define EVENTS                                                                                                         \
    "step 0 setup\n@1 p4000 p800 @2 p800 p40\n"                                                                        \
    "step 1 forward\n@1 a1000x c0\n"                                                                                   \
    "step 1 backward\n@2 g40 g800 @1 g4000 -4\n"                                                                       \
    "step 1 optimizer\n@0 o4000 o4000 o800 o800 o40 o40 t4000 t800 t40 -14 -15 -16\n"                                  \
    "step 2 forward\n-5 -6 -7 a1000x\n"                                                                                \
    "step 2 backward\n@2 g40 g800 @1 g4000 -17\n"                                                                      \
    "step 2 optimizer\n@0 t4000 t800 t40 -21 -22 -23\n"                                                                \
    "step 2 setup\n-18 -19 -20\n"                                                                                      \
    "end\n"
#define TEXT HEAD "events 39 24\n" EVENTS

struct sums {
    int64_t states, copies, others; /* bytes that are allocated in optimizers' steps, and elsewhere */
    size_t frees;                   /* there */
    int64_t most;                   /* at once, in optimizers' steps */
};

static void read_text(const char *text)
{
    capture_release(&capture);
    fail_if(capture_read(&capture, "net.capture", text, strlen(text), 16, &trouble), trouble);
}

static int change(enum optimizer optimizer, bool weight_decay)
{
    const struct capture_changes changes = {.optimizer = optimizer, .weight_decay = weight_decay};

    return capture_change(&capture, &changes, &trouble);
}

static struct sums sums_of(const struct program *program, uint8_t step)
{
    CLEANUP(free_ptr) int64_t *bytes = xcalloc(program->tensor_count, sizeof *bytes);
    struct sums sums = {0};
    int64_t now = 0;

    for (size_t i = 0; i < program->event_count; i++) {
        const struct program_event *event = &program->events[i];
        bool counts = event->phase == PHASE_OPTIMIZER && event->step == step;
        if (event->op == PROGRAM_ALLOC) {
            bytes[event->tensor] = event->bytes;
            now += event->bytes;
            if (event->phase != PHASE_OPTIMIZER)
                sums.others += event->bytes;
            else if (counts)
                *(event->category == MEMORY_OPTIMIZER ? &sums.states : &sums.copies) += event->bytes;
        } else if (event->op == PROGRAM_FREE) {
            now -= bytes[event->tensor];
            bytes[event->tensor] = 0;
            sums.frees += counts;
        }
        if (counts && now > sums.most)
            sums.most = now;
    }
    return sums;
}

CAPTURE_TEST(each_optimizer_has_its_states)
{
    static const struct {
        enum optimizer optimizer;
        bool weight_decay;
        int64_t states, copies; /* of trained tensors; copies of it within a step */
    } cases[] = {
        {OPTIMIZER_SGD, false, 0, 0},     {OPTIMIZER_SGD, true, 0, 1},   {OPTIMIZER_MOMENTUM, false, 1, 0},
        {OPTIMIZER_MOMENTUM, true, 1, 1}, {OPTIMIZER_ADAM, false, 2, 1}, {OPTIMIZER_ADAM, true, 2, 2},
        {OPTIMIZER_ADAMW, true, 2, 1},
    };
    const int64_t trained = 4840, all = 5640;

    read_text(TEXT);
    int64_t others = sums_of(&capture.program, 1).others;
    for (size_t i = 0; i < array_size(cases); i++) {
        read_text(TEXT);
        assert_int_equal(change(cases[i].optimizer, cases[i].weight_decay), 0);
        assert_int_equal(capture.optimizer, cases[i].optimizer);
        assert_int_equal(capture.program.batch_size, 16);
        struct sums first = sums_of(&capture.program, 1);
        struct sums second = sums_of(&capture.program, 2);
        assert_int_equal(first.states, cases[i].states * trained);
        assert_int_equal(first.copies, cases[i].copies * trained);
        assert_int_equal(first.frees, cases[i].copies * 3);
        assert_int_equal(second.states, 0);
        assert_int_equal(second.copies, cases[i].copies * trained);
        assert_int_equal(second.frees, cases[i].copies * 3);
        if (cases[i].copies) /* else nothing happens in the second step */
            assert_int_equal(second.most, all + (1 + cases[i].states + cases[i].copies) * trained);
        assert_int_equal(first.others, others);
    }
}

/* Momentum's first buffers are copies of the gradients that have been decayed: both are there before them. */
CAPTURE_TEST(momentum_copies_what_has_decayed)
{
    size_t i = 0;

    read_text(TEXT);
    assert_int_equal(change(OPTIMIZER_MOMENTUM, true), 0);
    while (capture.program.events[i].phase != PHASE_OPTIMIZER)
        i++;
    const struct program_event *event = &capture.program.events[i];
    for (size_t k = 0; k < 6; k++) {
        static const int64_t bytes[] = {4000, 800, 40};
        assert_int_equal(event[k].bytes, bytes[k % 3]);
        assert_int_equal(event[k].category, k < 3 ? MEMORY_TEMPORARY : MEMORY_OPTIMIZER);
    }
    assert_string_equal(capture.program.labels[event[3].label], "fc1");
    assert_int_equal(event[6].op, PROGRAM_FREE);
}

/* The recorded one stays as it was recorded; and a changed one can be changed again. */
CAPTURE_TEST(recorded_optimizer_stays)
{
    read_text(TEXT);
    assert_int_equal(change(OPTIMIZER_ADAM, false), 0);
    assert_int_equal(capture.program.event_count, 39);
    struct sums adam = sums_of(&capture.program, 2);
    assert_int_equal(change(OPTIMIZER_SGD, true), 0);
    assert_int_equal(change(OPTIMIZER_ADAM, false), 0);
    assert_int_equal(sums_of(&capture.program, 2).most, adam.most);
    assert_int_equal(capture.program.convs[0].batch, 16);
    assert_int_equal(capture.program.conv_count, 1);
}

CAPTURE_TEST(says_why_not)
{
    static const char untrained[] = HEAD "events 2 1\nstep 1 forward\n@1 p4000 c0\nend\n";

    read_text(TEXT);
    assert_error(change(OPTIMIZER_ADAFACTOR, false), -ENOTSUP, "record it with adafactor");
    assert_int_equal(capture.program.event_count, 39);
    assert_int_equal(capture.optimizer, OPTIMIZER_ADAM);
    read_text(untrained);
    assert_error(change(OPTIMIZER_SGD, false), -ENOTSUP, "no gradients");
    assert_int_equal(capture.program.event_count, 2);
}

/* Where the cache is emptied: the number of such events before the program's event with this index. */
static size_t emptied(const struct program *program, size_t end)
{
    size_t count = 0;

    for (size_t i = 0; i < end; i++)
        count += program->events[i].op == PROGRAM_EMPTY;
    return count;
}

CAPTURE_TEST(cache_is_emptied_at_each_new_kind)
{
    static const char text[] = "carma-capture 1\ntorch 2.10.0\nmapping cuda\nmodel Net\nbatch 8 scales\n"
                               "optimizer adam\nprecision fp32\nparameters 40\nflops 7\nelements 77\n"
                               "counts 1 2 3 4 5 6 7\nlabels 0\nconvs 4\n"
                               "f 4 0 1x 3 64 1 8,8 8,8 3,3 1,1 1,1 1,1\n"   /* 0 */
                               "f 4 0 1x 3 64 1 8,8 8,8 3,3 1,1 1,1 2,2\n"   /* 1: another dilation */
                               "w 4 0 1x 3 64 1 8,8 8,8 3,3 1,1 1,1 1,1\n"   /* 2: another pass */
                               "f 4 0 1x 64 64 64 8,8 8,8 3,3 1,1 1,1 1,1\n" /* 3: depthwise */
                               "events 9 2\nstep 1 forward\np40 c0 c1 c0 c3\nstep 1 backward\ng40 c2\n"
                               "step 2 forward\nc0 c3\nend\n";
    const struct capture_changes changes = {.optimizer = OPTIMIZER_ADAM, .cudnn_benchmark = true};
    static const uint8_t expected[] = {PROGRAM_ALLOC, PROGRAM_CONV,  PROGRAM_EMPTY, PROGRAM_CONV,
                                       PROGRAM_EMPTY, PROGRAM_CONV,  PROGRAM_CONV,  PROGRAM_ALLOC,
                                       PROGRAM_CONV,  PROGRAM_EMPTY, PROGRAM_CONV,  PROGRAM_CONV};

    read_text(text);
    assert_int_equal(capture_change(&capture, &changes, NULL), 0);
    assert_int_equal(capture.program.event_count, array_size(expected));
    for (size_t i = 0; i < array_size(expected); i++)
        assert_int_equal(capture.program.events[i].op, expected[i]);
    read_text(text);
    assert_int_equal(change(OPTIMIZER_SGD, false), 0);
    assert_int_equal(emptied(&capture.program, capture.program.event_count), 0);
}

/* Two batches of images more, and one of bytes, from before the first step to the end. */
CAPTURE_TEST(loader_brings_images_ahead)
{
    const struct capture_changes changes = {.optimizer = OPTIMIZER_ADAM, .prefetch = true};
    static const int64_t bytes[] = {16000, 16000, 4000};

    read_text(TEXT);
    assert_int_equal(capture_change(&capture, &changes, NULL), 0);
    assert_int_equal(capture.program.event_count, 39 + 3);
    for (size_t i = 0; i < array_size(bytes); i++) {
        const struct program_event *event = &capture.program.events[4 + i];
        assert_int_equal(event->op, PROGRAM_ALLOC);
        assert_int_equal(event->category, MEMORY_INPUT);
        assert_int_equal(event->phase, PHASE_SETUP);
        assert_int_equal(event->bytes, bytes[i]);
        for (size_t k = 0; k < capture.program.event_count; k++)
            assert_false(capture.program.events[k].op == PROGRAM_FREE &&
                         capture.program.events[k].tensor == event->tensor);
    }
    assert_int_equal(capture.program.events[7].bytes, 16000);
    assert_int_equal(capture.program.events[7].step, 1);
}

/* As many steps as a file can have, with as many parameters as fit: it ends in time, and says so. */
CAPTURE_TEST(hostile_steps_end)
{
    size_t parameters = 20000, size = parameters * 8 + 255 * 40 + 4096, length = 0;
    CLEANUP(free_ptr) char *text = xcalloc(size, 1);

    length +=
        (size_t)snprintf(text, size, HEAD "events %zu %zu\nstep 0 setup\n", 2 * parameters + 255, 2 * parameters + 255);
    for (size_t i = 0; i < parameters; i++)
        length += (size_t)snprintf(text + length, size - length, "p4\n");
    length += (size_t)snprintf(text + length, size - length, "step 1 backward\n");
    for (size_t i = 0; i < parameters; i++)
        length += (size_t)snprintf(text + length, size - length, "g4\n");
    for (int step = 1; step <= 255; step++)
        length += (size_t)snprintf(text + length, size - length, "step %d optimizer\nt4\n", step);
    snprintf(text + length, size - length, "end\n");
    read_text(text);
    assert_error(change(OPTIMIZER_ADAM, true), -EINVAL, "more than 4000000 events");
}

CAPTURE_TEST(golden_takes_another)
{
    CLEANUP(free_ptr) char *text = file_text(CARMA_GOLDEN "/model.capture");

    assert_int_equal(capture_read(&capture, "model.capture", text, strlen(text), 32, &trouble), 0);
    assert_int_equal(sums_of(&capture.program, 1).states, 2 * capture.program.parameter_bytes);
    assert_int_equal(change(OPTIMIZER_MOMENTUM, true), 0);
    assert_int_equal(sums_of(&capture.program, 1).states, capture.program.parameter_bytes);
    assert_int_equal(sums_of(&capture.program, 2).copies, capture.program.parameter_bytes);
}
