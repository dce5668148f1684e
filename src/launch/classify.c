#include "launch/classify.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/units.h"

#define BYTES_MAX (INT64_C(1) << 62)

/* A message is one line. `all` lists texts that must all be in it, `none` those that make it something else. Sources:
 * pytorch c10/cuda/CUDACachingAllocator.cpp; tensorflow and openxla xla/tsl/framework/bfc_allocator.cc,
 * xla/stream_executor/cuda, tf_allocator_adapter.cc; the CUDA, cuBLAS and cuDNN status names; HAMi-core. */
struct pattern {
    const char *all[3];
    const char *none[3];
    bool exception; /* all[0] is an exception's name, and counts only where a message begins with it */
};

static const struct pattern patterns[] = {
    /* PyTorch */
    {.all = {"CUDA out of memory. Tried to allocate"}},
    {.all = {"torch.OutOfMemoryError"}, .exception = true},
    {.all = {"torch.cuda.OutOfMemoryError"}, .exception = true},
    {.all = {"CUDA error: out of memory"}},
    /* a library could not make its handle or workspace: the memory is gone. Their NOT_INITIALIZED and INTERNAL_ERROR
     * have other causes as often, and the text does not tell */
    {.all = {"CUBLAS_STATUS_ALLOC_FAILED"}},
    {.all = {"CUDNN_STATUS_ALLOC_FAILED"}},
    /* TensorFlow says the same of the CPU's memory: the device must be a GPU */
    {.all = {"OOM when allocating tensor", "device:GPU"}},
    {.all = {"ResourceExhaustedError", "device:GPU"}, .none = {"larger than max", "device:CPU"}},
    {.all = {"failed to allocate memory [Op:", "device:GPU"}},
    {.all = {"Dst tensor is not initialized"}},
    /* the allocator's last word; its first tries end in "The caller indicates that this is not a failure". Other
     * allocators (cpu, cuda_host_bfc, gpu_host_bfc) hold host memory */
    {.all = {"Allocator (GPU_", "ran out of memory trying to allocate"},
     .none = {"The caller indicates that this is not a failure"}},
    /* JAX */
    {.all = {"RESOURCE_EXHAUSTED: Out of memory while trying to allocate"}},
    {.all = {"RESOURCE_EXHAUSTED: Failed to allocate request for", "on device ordinal"}},
    /* CUDA itself. TensorFlow and XLA log a failed first try, before they retry with less, with the same name */
    {.all = {"CUDA_ERROR_OUT_OF_MEMORY"}, .none = {"from device:", "on host:", "to allocate host"}},
    {.all = {"cudaErrorMemoryAllocation"}},
    {.all = {"[HAMI-core ERROR", "Device ", " OOM "}},
};

/* What is never about a GPU of ours, whatever else the line says: Apple's GPUs, host memory, Google's TPUs. */
static const char *const traps[] = {
    "MPS backend out of memory",
    "Out of host memory",
    "memory space hbm",
    "XLA:TPU",
};

/* A piece of the text; not NUL-terminated. */
struct span {
    const char *text;
    size_t length;
};

static const char *find(struct span in, const char *what)
{
    return memmem(in.text, in.length, what, strlen(what));
}

static struct span after(struct span in, const char *what)
{
    const char *at = find(in, what);

    if (!at)
        return (struct span){0};
    at += strlen(what);
    return (struct span){at, (size_t)(in.text + in.length - at)};
}

/* "name" or "name: ...", not the name in a line of source that a traceback shows. */
static bool begins_message(struct span line, const char *name)
{
    static const char *const source_words[] = {"except", "raise", "import", "isinstance", "pytest.raises"};
    struct span rest = after(line, name);
    const char *at = find(line, name);
    struct span before = {line.text, at ? (size_t)(at - line.text) : 0};

    if (!at || (rest.length && rest.text[0] != ':'))
        return false;
    if (before.length && (isalnum((unsigned char)at[-1]) || strchr("_.('\"`", at[-1])))
        return false;
    for (size_t i = 0; i < array_size(source_words); i++) {
        if (find(before, source_words[i]))
            return false;
    }
    return true;
}

static bool matches(struct span line, const struct pattern *pattern)
{
    for (size_t i = 0; i < array_size(pattern->all) && pattern->all[i]; i++) {
        if (!find(line, pattern->all[i]))
            return false;
    }
    for (size_t i = 0; i < array_size(pattern->none) && pattern->none[i]; i++) {
        if (find(line, pattern->none[i]))
            return false;
    }
    return !pattern->exception || begins_message(line, pattern->all[0]);
}

static bool is_gpu_oom(struct span line)
{
    bool found = false;

    for (size_t i = 0; i < array_size(patterns) && !found; i++)
        found = matches(line, &patterns[i]);
    for (size_t i = 0; i < array_size(traps) && found; i++)
        found = !find(line, traps[i]);
    return found;
}

/* "20.00 MiB", "2.55GiB", "33554432 bytes", "184549376B", "32.00M"; -1 for anything else. *used: characters read. */
static int64_t read_size(struct span in, size_t *used)
{
    static const struct {
        const char *name;
        int64_t bytes;
    } units[] = {{"bytes", 1}, {"KiB", KIB}, {"MiB", MIB}, {"GiB", GIB}, {"TiB", TIB},
                 {"B", 1},     {"K", KIB},   {"M", MIB},   {"G", GIB},   {"T", TIB}};
    char number[40];
    size_t digits = 0, at;
    double value;

    while (digits < in.length && digits < sizeof number - 1 &&
           (isdigit((unsigned char)in.text[digits]) || in.text[digits] == '.')) {
        number[digits] = in.text[digits];
        digits++;
    }
    number[digits] = '\0';
    if (digits == 0 || !isdigit((unsigned char)number[0]))
        return -1;
    at = digits;
    if (at < in.length && in.text[at] == ' ')
        at++;
    value = strtod(number, NULL);
    for (size_t i = 0; i < array_size(units); i++) {
        size_t size = strlen(units[i].name);
        if (in.length - at < size || memcmp(in.text + at, units[i].name, size) != 0)
            continue;
        if (at + size < in.length && isalnum((unsigned char)in.text[at + size]))
            continue;
        *used = at + size;
        if (units[i].bytes == 1 && !strchr(number, '.'))
            return strtoll(number, NULL, 10) < BYTES_MAX ? strtoll(number, NULL, 10) : -1;
        value *= (double)units[i].bytes;
        return value < (double)BYTES_MAX ? (int64_t)value : -1;
    }
    return -1;
}

/* The size after `words`; where an exact "(N bytes)" or "(NB)" follows it, that. */
static int64_t size_after(struct span line, const char *words)
{
    struct span rest = after(line, words);
    size_t used = 0, ignored;
    int64_t rough, exact = -1;

    if (!rest.text)
        return -1;
    rough = read_size(rest, &used);
    if (rough >= 0 && rest.length > used + 2 && memcmp(rest.text + used, " (", 2) == 0)
        exact = read_size((struct span){rest.text + used + 2, rest.length - used - 2}, &ignored);
    return exact >= 0 ? exact : rough;
}

/* "shape[32,1024,64,64] and type float" */
static int64_t tensor_size(struct span line)
{
    static const struct {
        const char *name;
        int64_t bytes;
    } types[] = {{"float", 4}, {"half", 2},  {"bfloat16", 2}, {"double", 8}, {"int64", 8},    {"int32", 4},
                 {"int16", 2}, {"uint8", 1}, {"int8", 1},     {"bool", 1},   {"complex64", 8}};
    struct span rest = after(line, "OOM when allocating tensor with shape[");
    int64_t size = 1, dimension = 0;
    bool digits = false;
    size_t at = 0;

    if (!rest.text)
        return -1;
    for (; at < rest.length; at++) {
        if (isdigit((unsigned char)rest.text[at])) {
            digits = true;
            if (__builtin_mul_overflow(dimension, 10, &dimension) ||
                __builtin_add_overflow(dimension, rest.text[at] - '0', &dimension))
                return -1;
        } else if (digits && (rest.text[at] == ',' || rest.text[at] == ']')) {
            if (__builtin_mul_overflow(size, dimension, &size))
                return -1;
            dimension = 0;
            digits = false;
            if (rest.text[at] == ']')
                break;
        } else {
            return -1;
        }
    }
    rest = after((struct span){rest.text + at, rest.length - at}, "] and type ");
    for (size_t i = 0; rest.text && i < array_size(types); i++) {
        size_t length = strlen(types[i].name);
        if (rest.length > length && memcmp(rest.text, types[i].name, length) == 0 && rest.text[length] == ' ')
            return __builtin_mul_overflow(size, types[i].bytes, &size) || size >= BYTES_MAX ? -1 : size;
    }
    return -1;
}

static int64_t requested_size(struct span line)
{
    static const char *const words[] = {"Tried to allocate ", "trying to allocate ", "Failed to allocate request for "};

    for (size_t i = 0; i < array_size(words); i++) {
        int64_t size = size_after(line, words[i]);
        if (size >= 0)
            return size;
    }
    return tensor_size(line);
}

/* "... of which 1.03 GiB is free", older "...; 5.06 MiB free; ..." */
static int64_t free_size(struct span line)
{
    int64_t size = size_after(line, " of which ");
    struct span rest = line;
    size_t used = 0;

    if (size >= 0)
        return size;
    while ((rest = after(rest, "; ")).text) {
        size = read_size(rest, &used);
        if (size >= 0 && rest.length >= used + 6 && memcmp(rest.text + used, " free;", 6) == 0)
            return size;
    }
    return -1;
}

static void keep_line(struct span line, struct classify_verdict *verdict)
{
    size_t length = line.length < sizeof verdict->line - 1 ? line.length : sizeof verdict->line - 1;

    memcpy(verdict->line, line.text, length);
    verdict->line[length] = '\0';
}

void classify_output(const char *text, size_t length, struct classify_verdict *verdict)
{
    *verdict = (struct classify_verdict){.requested_bytes = -1, .free_bytes = -1};
    for (size_t at = 0, end; at < length; at = end + 1) {
        struct span line = {text + at, 0};
        int64_t size;
        /* a progress bar's carriage return and a NUL end a line too */
        for (end = at; end < length && text[end] != '\n' && text[end] != '\r' && text[end] != '\0'; end++)
            line.length++;
        if (!is_gpu_oom(line))
            continue;
        verdict->gpu_oom = true;
        keep_line(line, verdict);
        if ((size = requested_size(line)) >= 0) {
            verdict->requested_bytes = size;
            verdict->free_bytes = free_size(line);
        }
    }
}
