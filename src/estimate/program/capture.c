#include "estimate/program/capture.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "estimate/program/capture_text.h"

#define MAX_LABELS    1000000
#define MAX_CONVS     1000000
#define MAX_BATCH     (INT64_C(1) << 31)
#define MAX_DIMENSION INT32_MAX
#define MAX_STEP      255

struct reader {
    struct capture_text text;
    struct capture *capture;
    uint32_t *labels; /* the file's number -> the program's; owned */
    size_t label_count;
    struct program_conv *convs; /* the file's table; owned */
    size_t conv_count;
    uint8_t *freed;             /* by tensor; owned */
    int64_t tensor_count;       /* that the file announces */
    struct program_event place; /* step, phase and label of the next events */
};

static void reader_release(struct reader *reader)
{
    free(reader->labels);
    free(reader->convs);
    free(reader->freed);
}

static int read_text(struct capture_text *text, const char *word, char *buffer, size_t size)
{
    size_t length;
    int rc = capture_field(text, word);

    if (rc)
        return rc;
    length = (size_t)(text->end - text->at);
    if (length >= size)
        return capture_fail(text, "%s: longer than %zu characters", word, size - 1);
    memcpy(buffer, text->at, length);
    buffer[length] = '\0';
    return 0;
}

static int read_number(struct capture_text *text, const char *word, int64_t high, int64_t *value)
{
    int rc = capture_field(text, word);

    rc = rc ? rc : capture_number_word(text, high, value);
    return rc ? rc : capture_line_end(text);
}

/* batch N, or batch N scales: any other batch size can be asked for as well. */
static int read_batch(struct reader *reader, int64_t wanted)
{
    struct capture_text *text = &reader->text;
    int rc = capture_field(text, "batch");

    rc = rc ? rc : capture_number_word(text, MAX_BATCH, &reader->capture->batch_size);
    if (rc)
        return rc;
    if (reader->capture->batch_size < 1)
        return capture_fail(text, "batch: at least 1");
    text->scales = text->end - text->at == 6 && memcmp(text->at, "scales", 6) == 0;
    if (!text->scales && (rc = capture_line_end(text)))
        return rc;
    if (wanted > MAX_BATCH)
        return capture_fail(text, "batch size %lld: at most %lld", (long long)wanted, (long long)MAX_BATCH);
    if (wanted > 0 && wanted != reader->capture->batch_size && !text->scales)
        return capture_fail(text, "recorded for batch size %lld alone, not for %lld: record it with that one",
                            (long long)reader->capture->batch_size, (long long)wanted);
    if (wanted > 0)
        reader->capture->batch_size = wanted;
    text->batch_size = reader->capture->program.batch_size = reader->capture->batch_size;
    reader->capture->scales = text->scales;
    return 0;
}

static int read_training(struct reader *reader)
{
    struct capture *capture = reader->capture;
    char optimizer[64], precision[16];
    int rc = read_text(&reader->text, "optimizer", optimizer, sizeof optimizer);

    if (rc)
        return rc;
    capture->optimizer_known = optimizer_parse(optimizer, &capture->optimizer, NULL) == 0;
    if ((rc = read_text(&reader->text, "precision", precision, sizeof precision)))
        return rc;
    if (strcmp(precision, "half") == 0) /* the whole model: the arithmetic is that of mixed precision */
        capture->precision = PRECISION_AMP;
    else if (precision_parse(precision, &capture->precision, NULL))
        return capture_fail(&reader->text, "precision '%s' is not one of fp32, tf32, amp, half", precision);
    return 0;
}

static int read_counts(struct reader *reader)
{
    struct program *program = &reader->capture->program;
    uint32_t *const counts[] = {&program->layers,   &program->convolutions, &program->linears,   &program->norms,
                                &program->dropouts, &program->activations,  &program->attentions};
    const char *word;
    size_t length;
    int64_t value;
    int rc = read_number(&reader->text, "parameters", PROGRAM_MAX_BYTES, &program->parameter_bytes);

    rc = rc ? rc : capture_field(&reader->text, "flops");
    rc = rc ? rc : capture_word(&reader->text, &word, &length);
    rc = rc ? rc : capture_size(&reader->text, word, length, INT64_MAX, &value);
    rc = rc ? rc : capture_line_end(&reader->text);
    if (rc)
        return rc;
    program->flops = (uint64_t)value;
    rc = read_number(&reader->text, "elements", PROGRAM_MAX_BYTES, &program->activation_elements);
    rc = rc ? rc : capture_field(&reader->text, "counts");
    for (size_t i = 0; i < array_size(counts) && !rc; i++) {
        rc = capture_number_word(&reader->text, PROGRAM_MAX_EVENTS, &value);
        *counts[i] = rc ? 0 : (uint32_t)value;
    }
    return rc ? rc : capture_line_end(&reader->text);
}

/* doubts PERMILLE SENTENCES: not in every file. */
static int read_doubts(struct reader *reader)
{
    struct capture_text *text = &reader->text;
    struct capture *capture = reader->capture;
    int64_t permille;
    int rc;

    if (text->limit - text->next < 7 || memcmp(text->next, "doubts ", 7) != 0)
        return 0;
    rc = capture_field(text, "doubts");
    rc = rc ? rc : capture_number_word(text, 1000, &permille);
    if (rc)
        return rc;
    capture->doubt_permille = (int32_t)permille;
    snprintf(capture->doubts, sizeof capture->doubts, "%.*s", (int)(text->end - text->at), text->at);
    return 0;
}

/* allocator SETTINGS: those that the script makes; not in every file. */
static int read_allocator(struct reader *reader)
{
    struct capture_text *text = &reader->text;
    CLEANUP(free_ptr) char *settings = NULL;
    int rc;

    if (text->limit - text->next < 10 || memcmp(text->next, "allocator ", 10) != 0)
        return 0;
    if ((rc = capture_field(text, "allocator")))
        return rc;
    settings = xasprintf("%.*s", (int)(text->end - text->at), text->at);
    allocator_settings_read(&reader->capture->program.allocator, settings);
    return 0;
}

/* A table's "WORD COUNT" line. Each entry is a line, so a count above the bytes that are left is a lie: no memory for
 * it. */
static int read_table(struct reader *reader, const char *word, int64_t high, size_t *count)
{
    int64_t value;
    int rc = read_number(&reader->text, word, high, &value);

    if (rc)
        return rc;
    if (value > reader->text.limit - reader->text.next)
        return capture_fail(&reader->text, "%s: more than the file has lines", word);
    *count = (size_t)value;
    return 0;
}

static int read_labels(struct reader *reader)
{
    struct capture_text *text = &reader->text;
    int rc = read_table(reader, "labels", MAX_LABELS, &reader->label_count);

    if (rc)
        return rc;
    reader->labels = xcalloc(++reader->label_count, sizeof *reader->labels); /* 0: none */
    for (size_t i = 1; i < reader->label_count; i++) {
        if ((rc = capture_line(text)))
            return rc;
        if (text->at == text->end)
            return capture_fail(text, "an empty label");
        CLEANUP(free_ptr) char *label = xstrndup(text->at, (size_t)(text->end - text->at));
        reader->labels[i] = program_label(&reader->capture->program, label);
    }
    return 0;
}

/* "3,3": as many numbers as the convolution has dimensions. */
static int read_dimensions(struct capture_text *text, int32_t low, uint8_t *rank, int32_t dimensions[3])
{
    const char *word, *end;
    size_t length;
    int64_t value;
    uint8_t count = 0;
    int rc = capture_word(text, &word, &length);

    if (rc)
        return rc;
    for (end = word + length; word <= end; count++) {
        const char *comma = memchr(word, ',', (size_t)(end - word));
        size_t part = (size_t)((comma ? comma : end) - word);
        if (count == 3)
            return capture_fail(text, "a convolution has at most 3 dimensions");
        if ((rc = capture_number(text, word, part, MAX_DIMENSION, &value)))
            return rc;
        if (value < low)
            return capture_fail(text, "a convolution's size, kernel, stride and dilation are at least 1");
        dimensions[count] = (int32_t)value;
        word += part + 1;
    }
    if (*rank && *rank != count)
        return capture_fail(text, "a convolution of %u dimensions has one with %u", *rank, count);
    *rank = count;
    return 0;
}

static int read_conv(struct capture_text *text, struct program_conv *conv)
{
    static const char passes[] = "fdw"; /* in the order of enum conv_pass */
    const char *word, *pass;
    size_t length;
    int64_t element, transposed;
    int rc = capture_line(text);

    rc = rc ? rc : capture_word(text, &word, &length);
    if (rc)
        return rc;
    pass = length == 1 ? memchr(passes, *word, sizeof passes - 1) : NULL;
    if (!pass)
        return capture_fail(text, "a convolution begins with f, d or w");
    conv->pass = (uint8_t)(pass - passes);
    rc = capture_number_word(text, 8, &element);
    rc = rc ? rc : capture_number_word(text, 1, &transposed);
    rc = rc ? rc : capture_word(text, &word, &length);
    rc = rc ? rc : capture_size(text, word, length, MAX_BATCH, &conv->batch);
    rc = rc ? rc : capture_number_word(text, MAX_DIMENSION, &conv->in_channels);
    rc = rc ? rc : capture_number_word(text, MAX_DIMENSION, &conv->out_channels);
    rc = rc ? rc : capture_number_word(text, MAX_DIMENSION, &conv->groups);
    if (rc)
        return rc;
    conv->element_bytes = (uint8_t)element;
    conv->transposed = (uint8_t)transposed;
    if (!element || !conv->in_channels || !conv->out_channels || !conv->groups)
        return capture_fail(text, "a convolution's channels, groups and element size are at least 1");
    rc = read_dimensions(text, 1, &conv->rank, conv->in);
    rc = rc ? rc : read_dimensions(text, 1, &conv->rank, conv->out);
    rc = rc ? rc : read_dimensions(text, 1, &conv->rank, conv->kernel);
    rc = rc ? rc : read_dimensions(text, 1, &conv->rank, conv->stride);
    rc = rc ? rc : read_dimensions(text, 0, &conv->rank, conv->padding);
    rc = rc ? rc : read_dimensions(text, 1, &conv->rank, conv->dilation);
    return rc ? rc : capture_line_end(text);
}

static int read_convs(struct reader *reader)
{
    int rc = read_table(reader, "convs", MAX_CONVS, &reader->conv_count);

    if (rc)
        return rc;
    reader->convs = xcalloc(reader->conv_count + 1, sizeof *reader->convs);
    for (size_t i = 0; i < reader->conv_count && !rc; i++)
        rc = read_conv(&reader->text, &reader->convs[i]);
    return rc;
}

/* step NUMBER PHASE */
static int read_step(struct reader *reader)
{
    static const char *const phases[PHASE_COUNT] = {[PHASE_SETUP] = "setup",
                                                    [PHASE_FORWARD] = "forward",
                                                    [PHASE_BACKWARD] = "backward",
                                                    [PHASE_OPTIMIZER] = "optimizer"};
    struct capture_text *text = &reader->text;
    const char *word;
    size_t length;
    int64_t step;
    int rc = capture_number_word(text, MAX_STEP, &step);

    rc = rc ? rc : capture_word(text, &word, &length);
    rc = rc ? rc : capture_line_end(text);
    if (rc)
        return rc;
    for (int phase = 0; phase < PHASE_COUNT; phase++) {
        if (strlen(phases[phase]) == length && memcmp(phases[phase], word, length) == 0) {
            reader->place.phase = (uint8_t)phase;
            reader->place.step = (uint8_t)step;
            return 0;
        }
    }
    return capture_fail(text, "a phase is setup, forward, backward or optimizer");
}

static int read_free(struct reader *reader, const char *word, size_t length)
{
    struct program *program = &reader->capture->program;
    int64_t tensor;
    int rc = capture_number(&reader->text, word, length, UINT32_MAX, &tensor);

    if (rc)
        return rc;
    if (tensor >= program->tensor_count)
        return capture_fail(&reader->text, "tensor %lld is freed before it is allocated", (long long)tensor);
    if (reader->freed[tensor])
        return capture_fail(&reader->text, "tensor %lld is freed twice", (long long)tensor);
    reader->freed[tensor] = 1;
    program_free(program, (uint32_t)tensor, reader->place);
    return 0;
}

static int read_alloc(struct reader *reader, uint8_t category, const char *word, size_t length)
{
    struct program *program = &reader->capture->program;
    struct program_event event = reader->place;
    int rc = capture_size(&reader->text, word, length, PROGRAM_MAX_BYTES, &event.bytes);

    if (rc)
        return rc;
    if (program->tensor_count >= reader->tensor_count)
        return capture_fail(&reader->text, "more tensors than the %lld announced", (long long)reader->tensor_count);
    event.category = category;
    program_alloc(program, event);
    return 0;
}

/* A number that refers to a table's entry. */
static int read_reference(struct reader *reader, const char *what, const char *word, size_t length, size_t count,
                          int64_t *index)
{
    int rc = capture_number(&reader->text, word, length, UINT32_MAX, index);

    if (!rc && (size_t)*index >= count)
        return capture_fail(&reader->text, "there is no %s %lld", what, (long long)*index);
    return rc;
}

static int read_event(struct reader *reader, const char *word, size_t length)
{
    static const char categories[] = "pgoatibw"; /* in the order of enum memory_category */
    const char *category = memchr(categories, *word, sizeof categories - 1);
    int64_t index;
    int rc;

    switch (*word) {
    case '@':
        rc = read_reference(reader, "label", word + 1, length - 1, reader->label_count, &index);
        reader->place.label = rc ? 0 : reader->labels[index];
        return rc;
    case 'c':
        rc = read_reference(reader, "convolution", word + 1, length - 1, reader->conv_count, &index);
        if (!rc)
            program_conv(&reader->capture->program, &reader->convs[index], reader->place);
        return rc;
    case '-':
        return read_free(reader, word + 1, length - 1);
    default:
        if (!category)
            return capture_fail(&reader->text, "'%c' begins no event", *word);
        return read_alloc(reader, (uint8_t)(category - categories), word + 1, length - 1);
    }
}

static int read_events(struct reader *reader)
{
    struct capture_text *text = &reader->text;
    struct program *program = &reader->capture->program;
    int64_t events;
    int rc = capture_field(text, "events");

    rc = rc ? rc : capture_number_word(text, PROGRAM_MAX_EVENTS, &events);
    rc = rc ? rc : capture_number_word(text, PROGRAM_MAX_EVENTS, &reader->tensor_count);
    rc = rc ? rc : capture_line_end(text);
    if (rc)
        return rc;
    if (reader->tensor_count > text->limit - text->next)
        return capture_fail(text, "events: more tensors than the file has bytes");
    reader->freed = xcalloc((size_t)reader->tensor_count + 1, sizeof *reader->freed);
    for (;;) {
        if ((rc = capture_line(text)))
            return rc;
        if (text->end - text->at == 3 && memcmp(text->at, "end", 3) == 0)
            break;
        if (text->end - text->at > 5 && memcmp(text->at, "step ", 5) == 0) {
            text->at += 5;
            if ((rc = read_step(reader)))
                return rc;
            continue;
        }
        do {
            const char *word;
            size_t length;
            rc = capture_word(text, &word, &length);
            if (!rc && (int64_t)program->event_count > events)
                rc = capture_fail(text, "more events than the %lld announced", (long long)events);
            if (rc || (rc = read_event(reader, word, length)))
                return rc;
        } while (text->at < text->end);
    }
    if ((int64_t)program->event_count != events || program->tensor_count != reader->tensor_count)
        return capture_fail(text, "%lld events and %lld tensors are announced, there are %zu and %u", (long long)events,
                            (long long)reader->tensor_count, program->event_count, program->tensor_count);
    if (text->next != text->limit)
        return capture_fail(text, "something follows the line 'end'");
    return 0;
}

static int read_all(struct reader *reader, int64_t batch_size)
{
    struct capture_text *text = &reader->text;
    int64_t version;
    int rc = read_number(text, "carma-capture", INT32_MAX, &version);

    if (!rc && version != 1)
        rc = capture_fail(text, "version %lld of the format: this carma reads version 1", (long long)version);
    rc = rc ? rc : read_text(text, "torch", reader->capture->torch, sizeof reader->capture->torch);
    rc = rc ? rc : read_text(text, "mapping", reader->capture->mapping, sizeof reader->capture->mapping);
    rc = rc ? rc : read_text(text, "model", reader->capture->model, sizeof reader->capture->model);
    rc = rc ? rc : read_batch(reader, batch_size);
    rc = rc ? rc : read_training(reader);
    rc = rc ? rc : read_counts(reader);
    rc = rc ? rc : read_doubts(reader);
    rc = rc ? rc : read_allocator(reader);
    rc = rc ? rc : read_labels(reader);
    rc = rc ? rc : read_convs(reader);
    return rc ? rc : read_events(reader);
}

int capture_read(struct capture *capture, const char *name, const char *text, size_t length, int64_t batch_size,
                 struct error *err)
{
    struct reader reader = {.capture = capture};
    int rc;

    *capture = (struct capture){0};
    program_init(&capture->program);
    capture_text_init(&reader.text, name, text, length, err);
    if (length > CAPTURE_MAX_BYTES)
        rc = error_set(err, EINVAL, "%s: larger than %zu MiB: no capture is", name, CAPTURE_MAX_BYTES >> 20);
    else
        rc = read_all(&reader, batch_size);
    reader_release(&reader);
    if (rc) {
        capture_release(capture);
        *capture = (struct capture){0};
    }
    return rc;
}

void capture_release(struct capture *capture)
{
    program_release(&capture->program);
}
