#include "launch/classify.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/units.h"

#define BYTES_MAX (INT64_C(1) << 62)

/* A message is one line. `all` lists texts that must all be in it, `none` those that make it something else; the first
 * pattern that matches says what it is. Sources: pytorch c10/cuda/CUDACachingAllocator.cpp, c10/core/impl/alloc_cpu.cpp;
 * tensorflow and openxla xla/tsl/framework/bfc_allocator.cc, xla/stream_executor/cuda, tf_allocator_adapter.cc; the names
 * and descriptions of the CUDA, cuBLAS, cuDNN, cuSOLVER and cuSPARSE status codes; NCCL; RMM; HAMi-core. */
struct pattern {
    enum output_kind kind;
    const char *all[3];
    const char *none[3];
    bool exception; /* all[0] is an exception's name, and counts only where a message begins with it */
};

static const struct pattern patterns[] = {
    /* never about a GPU of ours: Apple's GPUs, Google's TPUs; first tries of allocators that go on with less */
    {OUTPUT_NOTHING, .all = {"MPS backend out of memory"}},
    {OUTPUT_NOTHING, .all = {"memory space hbm"}},
    {OUTPUT_NOTHING, .all = {"XLA:TPU"}},
    {OUTPUT_NOTHING, .all = {"The caller indicates that this is not a failure"}},
    {OUTPUT_NOTHING, .all = {"CUDA_ERROR_OUT_OF_MEMORY", "from device:"}},
    {OUTPUT_NOTHING, .all = {"CUDA_ERROR_OUT_OF_MEMORY", "on host:"}},
    {OUTPUT_NOTHING, .all = {"CUDA_ERROR_OUT_OF_MEMORY", "to allocate host"}},
    {OUTPUT_HOST_OOM, .all = {"Out of host memory"}},
    /* PyTorch */
    {OUTPUT_GPU_OOM, .all = {"CUDA out of memory. Tried to allocate"}},
    {OUTPUT_GPU_OOM, .all = {"torch.OutOfMemoryError"}, .exception = true},
    {OUTPUT_GPU_OOM, .all = {"torch.cuda.OutOfMemoryError"}, .exception = true},
    {OUTPUT_GPU_OOM, .all = {"CUDA error: out of memory"}},
    {OUTPUT_GPU_OOM, .all = {"CUDA driver error: out of memory"}},
    /* TensorFlow says the same of the CPU's memory */
    {OUTPUT_GPU_OOM, .all = {"OOM when allocating tensor", "device:GPU"}},
    {OUTPUT_HOST_OOM, .all = {"OOM when allocating tensor", "device:CPU"}},
    {OUTPUT_GPU_OOM, .all = {"ResourceExhaustedError", "device:GPU"}, .none = {"larger than max", "device:CPU"}},
    {OUTPUT_GPU_OOM, .all = {"failed to allocate memory [Op:", "device:GPU"}},
    {OUTPUT_GPU_OOM, .all = {"Dst tensor is not initialized"}},
    /* the allocator's last word; allocators with other names (cpu, cuda_host_bfc, gpu_host_bfc) hold host memory */
    {OUTPUT_GPU_OOM, .all = {"Allocator (GPU_", "ran out of memory trying to allocate"}},
    {OUTPUT_HOST_OOM, .all = {"Allocator (", "ran out of memory trying to allocate"}},
    /* JAX. "Out of memory allocating" is said of the CPU's memory too */
    {OUTPUT_GPU_OOM, .all = {"RESOURCE_EXHAUSTED: Out of memory while trying to allocate"}},
    {OUTPUT_GPU_OOM, .all = {"RESOURCE_EXHAUSTED: Failed to allocate request for", "on device ordinal"}},
    {OUTPUT_GPU_HANDLE_MAYBE, .all = {"RESOURCE_EXHAUSTED: Out of memory allocating"}},
    /* CUDA itself, and what is close to it */
    {OUTPUT_GPU_OOM, .all = {"CUDA_ERROR_OUT_OF_MEMORY"}},
    {OUTPUT_GPU_OOM, .all = {"cudaErrorMemoryAllocation"}},
    {OUTPUT_GPU_OOM, .all = {"Cuda failure", "'out of memory'"}},
    {OUTPUT_GPU_OOM, .all = {"cupy.cuda.memory.OutOfMemoryError"}, .exception = true},
    {OUTPUT_GPU_OOM, .all = {"std::bad_alloc: out_of_memory: CUDA error"}},
    {OUTPUT_GPU_OOM, .all = {"[HAMI-core ERROR", "Device ", " OOM "}},
    /* a library could not make its handle or workspace: the memory is gone */
    {OUTPUT_GPU_HANDLE, .all = {"CUBLAS_STATUS_ALLOC_FAILED"}},
    {OUTPUT_GPU_HANDLE, .all = {"CUDNN_STATUS_ALLOC_FAILED"}},
    {OUTPUT_GPU_HANDLE, .all = {"CUSOLVER_STATUS_ALLOC_FAILED"}},
    {OUTPUT_GPU_HANDLE, .all = {"CUSPARSE_STATUS_ALLOC_FAILED"}},
    {OUTPUT_GPU_HANDLE, .all = {"cublas handle", "the resource allocation failed"}},
    /* these have other causes as often, and the text does not tell */
    {OUTPUT_GPU_HANDLE_MAYBE, .all = {"CUBLAS_STATUS_NOT_INITIALIZED"}},
    {OUTPUT_GPU_HANDLE_MAYBE, .all = {"CUDNN_STATUS_NOT_INITIALIZED"}},
    {OUTPUT_GPU_HANDLE_MAYBE, .all = {"CUDNN_STATUS_INTERNAL_ERROR"}},
    {OUTPUT_GPU_HANDLE_MAYBE, .all = {"CUSOLVER_STATUS_NOT_INITIALIZED"}},
    {OUTPUT_GPU_HANDLE_MAYBE, .all = {"cublas handle", "the library was not initialized"}},
    {OUTPUT_GPU_HANDLE_MAYBE, .all = {"DNN library initialization failed"}},
    /* MPS (CUDA's errors 805 to 810) */
    {OUTPUT_MPS, .all = {"CUDA_ERROR_MPS_"}},
    {OUTPUT_MPS, .all = {"cudaErrorMps"}},
    {OUTPUT_MPS, .all = {"MPS client failed to connect to the MPS"}},
    {OUTPUT_MPS, .all = {"procedural call between the MPS server and the MPS client failed"}},
    {OUTPUT_MPS, .all = {"MPS server is not ready to accept"}},
    {OUTPUT_MPS, .all = {"the hardware resources required to create MPS client"}},
    {OUTPUT_MPS, .all = {"the hardware resources required to support device connections"}},
    {OUTPUT_MPS, .all = {"MPS client has been terminated by the server"}},
    /* the GPU */
    {OUTPUT_GPU_ERROR, .all = {"CUDA", "uncorrectable ECC error encountered"}},
    {OUTPUT_GPU_ERROR, .all = {"CUDA", "uncorrectable NVLink error detected"}},
    {OUTPUT_GPU_ERROR, .all = {"GPU has fallen off the bus"}},
    {OUTPUT_GPU_ERROR, .all = {"GPU is lost"}},
    /* a kernel's fault: CUDA's errors 700, 710, 714 to 719 */
    {OUTPUT_GPU_FAULT, .all = {"CUDA", "an illegal memory access was encountered"}},
    {OUTPUT_GPU_FAULT, .all = {"CUDA", "device-side assert triggered"}},
    {OUTPUT_GPU_FAULT, .all = {"CUDA", "hardware stack error"}},
    {OUTPUT_GPU_FAULT, .all = {"CUDA", "an illegal instruction was encountered"}},
    {OUTPUT_GPU_FAULT, .all = {"CUDA", "misaligned address"}},
    {OUTPUT_GPU_FAULT, .all = {"CUDA", "operation not supported on global/shared address space"}},
    {OUTPUT_GPU_FAULT, .all = {"CUDA", "invalid program counter"}},
    {OUTPUT_GPU_FAULT, .all = {"CUDA", "unspecified launch failure"}},
    /* the host's memory. ENOMEM is also said of limits: of locked memory (RDMA), of thread-local storage */
    {OUTPUT_HOST_OOM, .all = {"DataLoader worker", "is killed by signal: Killed"}},
    {OUTPUT_HOST_OOM, .all = {"DefaultCPUAllocator: can't allocate memory"}},
    {OUTPUT_HOST_OOM, .all = {"DefaultCPUAllocator: not enough memory"}},
    {OUTPUT_HOST_OOM, .all = {"_ArrayMemoryError: Unable to allocate"}},
    {OUTPUT_HOST_OOM, .all = {"MemoryError"}, .exception = true},
    {OUTPUT_HOST_OOM, .all = {"std::bad_alloc"}, .none = {"catch", "out_of_memory"}},
    {OUTPUT_HOST_OOM, .all = {"Cannot allocate memory"}, .none = {"ibv_", "static TLS", "mlock"}},
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

static enum output_kind kind_of(struct span line)
{
    for (size_t i = 0; i < array_size(patterns); i++)
        if (matches(line, &patterns[i]))
            return patterns[i].kind;
    return OUTPUT_NOTHING;
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

/* "Process 4711 has 21.07 GiB memory in use.", as often as there are others. */
static void read_tenants(struct span line, struct classify_verdict *verdict)
{
    verdict->tenant_count = 0;
    while ((line = after(line, "Process ")).text && verdict->tenant_count < CLASSIFY_MAX_TENANTS) {
        struct classify_tenant tenant = {0};
        struct span rest = line;
        size_t used = 0;
        while (rest.length && isdigit((unsigned char)*rest.text) && tenant.pid <= (INT32_MAX - 9) / 10) {
            tenant.pid = tenant.pid * 10 + (*rest.text - '0');
            rest = (struct span){rest.text + 1, rest.length - 1};
        }
        if (!tenant.pid || rest.length < 5 || memcmp(rest.text, " has ", 5) != 0)
            continue;
        rest = (struct span){rest.text + 5, rest.length - 5};
        tenant.used_bytes = read_size(rest, &used);
        if (tenant.used_bytes >= 0 && rest.length - used >= 14 && memcmp(rest.text + used, " memory in use", 14) == 0)
            verdict->tenants[verdict->tenant_count++] = tenant;
    }
}

static void keep_line(struct span line, struct classify_verdict *verdict)
{
    size_t length = line.length < sizeof verdict->line - 1 ? line.length : sizeof verdict->line - 1;

    memcpy(verdict->line, line.text, length);
    verdict->line[length] = '\0';
}

static bool tells_less(enum output_kind kind, enum output_kind than)
{
    return (kind == OUTPUT_GPU_HANDLE_MAYBE && than != OUTPUT_NOTHING) ||
           (kind == OUTPUT_GPU_HANDLE && than == OUTPUT_GPU_OOM);
}

static void take_line(struct span line, struct classify_verdict *verdict)
{
    enum output_kind kind = kind_of(line);
    int64_t size;

    if (kind == OUTPUT_NOTHING)
        return;
    if (kind == verdict->kind || !tells_less(kind, verdict->kind)) {
        verdict->kind = kind;
        keep_line(line, verdict);
    }
    if (kind == OUTPUT_GPU_OOM && (size = requested_size(line)) >= 0) {
        verdict->requested_bytes = size;
        verdict->free_bytes = free_size(line);
        read_tenants(line, verdict);
    }
}

void classify_init(struct classify_verdict *verdict)
{
    *verdict = (struct classify_verdict){.requested_bytes = -1, .free_bytes = -1};
}

void classify_output(const char *text, size_t length, struct classify_verdict *verdict)
{
    classify_init(verdict);
    for (size_t at = 0, end; at < length; at = end + 1) {
        /* a progress bar's carriage return and a NUL end a line too */
        for (end = at; end < length && text[end] != '\n' && text[end] != '\r' && text[end] != '\0'; end++)
            ;
        take_line((struct span){text + at, end - at}, verdict);
    }
}

const char *output_kind_name(uint32_t kind)
{
    static const char *const names[OUTPUT_KIND_COUNT] = {
        [OUTPUT_NOTHING] = "nothing",
        [OUTPUT_GPU_OOM] = "gpu_oom",
        [OUTPUT_GPU_HANDLE] = "gpu_handle",
        [OUTPUT_GPU_HANDLE_MAYBE] = "gpu_handle_maybe",
        [OUTPUT_HOST_OOM] = "host_oom",
        [OUTPUT_GPU_FAULT] = "gpu_fault",
        [OUTPUT_MPS] = "mps",
        [OUTPUT_GPU_ERROR] = "gpu_error",
    };

    return kind < OUTPUT_KIND_COUNT ? names[kind] : "unknown";
}
