/* Which outputs say that GPU memory ran out: one row per message, and the ones that only look like it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/memory.h"
#include "base/units.h"
#include "launch/classify.h"

#define NO (-1)

struct row {
    const char *text;
    bool gpu_oom;
    int64_t requested_bytes;
    int64_t free_bytes;
};

static const struct row rows[] = {
    /* PyTorch, current */
    {"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.50 GiB. GPU 1 has a total capacity of 39.38 GiB "
     "of which 768.00 MiB is free. Process 4711 has 21.07 GiB memory in use. Including non-PyTorch memory, this process "
     "has 17.55 GiB memory in use. Of the allocated memory 16.02 GiB is allocated by PyTorch, and 1.04 GiB is reserved "
     "by PyTorch but unallocated.", true, 7 * GIB / 2, 768 * MIB},
    {"torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 100.00 MiB. GPU 0 has a total capacity of "
     "79.11 GiB of which 12.50 KiB is free.", true, 100 * MIB, 12800},
    {"[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate more than 1EB memory.", true, NO, NO},
    {"torch.OutOfMemoryError: Allocation on device 0 would exceed allowed memory.", true, NO, NO},
    {"torch.cuda.OutOfMemoryError", true, NO, NO},
    /* PyTorch, older */
    {"RuntimeError: CUDA out of memory. Tried to allocate 48.00 MiB (GPU 2; 10.76 GiB total capacity; 9.31 GiB already "
     "allocated; 6.25 MiB free; 9.60 GiB reserved in total by PyTorch)", true, 48 * MIB, 6 * MIB + 256 * KIB},
    {"RuntimeError: CUDA out of memory. Tried to allocate 512.00 KiB (GPU 0; 7.93 GiB total capacty; 7.01 GiB already "
     "allocated; 3.00 MiB free; 120.00 MiB cached)", true, 512 * KIB, 3 * MIB},
    {"RuntimeError: CUDA error: out of memory", true, NO, NO},
    {"RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`", true, NO, NO},
    {"RuntimeError: cuDNN error: CUDNN_STATUS_ALLOC_FAILED", true, NO, NO},
    /* TensorFlow */
    {"tensorflow.python.framework.errors_impl.ResourceExhaustedError: OOM when allocating tensor with "
     "shape[16,256,56,56] and type float on /job:localhost/replica:0/task:0/device:GPU:0 by allocator GPU_0_bfc",
     true, INT64_C(16) * 256 * 56 * 56 * 4, NO},
    {"  (0) Resource exhausted: OOM when allocating tensor with shape[8,3] and type half on "
     "/job:localhost/replica:0/task:0/device:GPU:3 by allocator GPU_3_bfc", true, 48, NO},
    {"OOM when allocating tensor with shape[99999999999,99999999999,9] and type double on /device:GPU:0 by x", true, NO,
     NO},
    {"ResourceExhaustedError: {{function_node __wrapped__AddV2_device_/job:localhost/replica:0/task:0/device:GPU:0}} "
     "failed to allocate memory [Op:AddV2]", true, NO, NO},
    {"InternalError: Dst tensor is not initialized.", true, NO, NO},
    {"W bfc_allocator.cc:497] Allocator (GPU_0_bfc) ran out of memory trying to allocate 1.25GiB (rounded to "
     "1342177280)requested by op gradients/conv2d", true, GIB + 256 * MIB, NO},
    {"Allocator (GPU_1_bfc) ran out of memory trying to allocate 96.00MiB from the lower end (rounded to 100663296)",
     true, 96 * MIB, NO},
    /* JAX */
    {"jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 5368709120 "
     "bytes.", true, 5 * GIB, NO},
    {"jax.errors.JaxRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 8.00GiB.", true, 8 * GIB,
     NO},
    {"RESOURCE_EXHAUSTED: Failed to allocate request for 1.50GiB (1610612737B) on device ordinal 2", true, 1610612737,
     NO},
    /* CUDA */
    {"pycuda._driver.MemoryError: cuMemAlloc failed: CUDA_ERROR_OUT_OF_MEMORY", true, NO, NO},
    {"parallel_for failed: cudaErrorMemoryAllocation: out of memory", true, NO, NO},
    {"[HAMI-core ERROR (pid:77 thread=1 allocator.c:52)]: Device 0 OOM 9000000000 / 8000000000", true, NO, NO},

    /* what only looks like one */
    {"RuntimeError: MPS backend out of memory (MPS allocated: 17.2 GB, other allocations: 1 GB, max allowed: 18 GB). "
     "Tried to allocate 256.00 MB on private pool.", false, NO, NO},
    {"torch.OutOfMemoryError: MPS backend out of memory", false, NO, NO},
    {"W bfc_allocator.cc:290] Allocator (GPU_0_bfc) ran out of memory trying to allocate 2.00GiB with freed_by_count=0. "
     "The caller indicates that this is not a failure, but this may mean that there could be performance gains",
     false, NO, NO},
    {"I cuda_driver.cc:1000] failed to allocate 6.00G (6442450944 bytes) from device: CUDA_ERROR_OUT_OF_MEMORY: out of "
     "memory", false, NO, NO},
    {"failed to alloc 1073741824 bytes on host: CUDA_ERROR_OUT_OF_MEMORY: out of memory", false, NO, NO},
    {"Allocator (cuda_host_bfc) ran out of memory trying to allocate 4.00GiB requested by op x", false, NO, NO},
    {"Allocator (mklcpu) ran out of memory trying to allocate 4.00GiB requested by op x", false, NO, NO},
    {"ResourceExhaustedError: OOM when allocating tensor with shape[4096,4096,512] and type float on "
     "/job:localhost/replica:0/task:0/device:CPU:0 by allocator cpu", false, NO, NO},
    {"RESOURCE_EXHAUSTED: Out of host memory while trying to allocate 1073741824 bytes.", false, NO, NO},
    {"RESOURCE_EXHAUSTED: Out of host memory while trying to allocate 64 bytes: cuMemHostAlloc: "
     "CUDA_ERROR_OUT_OF_MEMORY", false, NO, NO},
    {"grpc._channel._InactiveRpcError: status = StatusCode.RESOURCE_EXHAUSTED details = \"Received message larger than "
     "max (9000000 vs. 4194304)\"", false, NO, NO},
    {"XlaRuntimeError: RESOURCE_EXHAUSTED: XLA:TPU compile permanent error. Ran out of memory in memory space hbm. Used "
     "20.00G of 15.48G hbm.", false, NO, NO},
    {"RESOURCE_EXHAUSTED: Out of memory while trying to allocate 5 bytes in memory space hbm", false, NO, NO},
    {"ResourceExhaustedError: Received message larger than max on /job:w/device:GPU:0", false, NO, NO},
    {"RuntimeError: [enforce fail at alloc_cpu.cpp:114] DefaultCPUAllocator: can't allocate memory: you tried to "
     "allocate 68719476736 bytes. Error code 12 (Cannot allocate memory)", false, NO, NO},
    {"MemoryError: Unable to allocate 7.45 GiB for an array with shape (1000000000,)", false, NO, NO},
    {"std::bad_alloc: out of memory", false, NO, NO},
    {"    except torch.cuda.OutOfMemoryError:", false, NO, NO},
    {"    except torch.OutOfMemoryError: retry()", false, NO, NO},
    {"    if isinstance(e, torch.OutOfMemoryError):", false, NO, NO},
    {"my.torch.OutOfMemoryErrors: none", false, NO, NO},
    {"oom_score_adj OOM unsuccessful", false, NO, NO},
    {"step 100: OOM-free so far, CUDA memory 12.0 GiB", false, NO, NO},
    {"RuntimeError: CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when calling `cublasCreate(handle)`", false, NO, NO},
    {"RuntimeError: cuDNN error: CUDNN_STATUS_INTERNAL_ERROR", false, NO, NO},
    {"RuntimeError: CUDA error: device-side assert triggered", false, NO, NO},
    {"", false, NO, NO},
};

static void check(const char *text, size_t length, const struct row *row)
{
    struct classify_verdict verdict;

    classify_output(text, length, &verdict);
    if (verdict.gpu_oom != row->gpu_oom || verdict.requested_bytes != row->requested_bytes ||
        verdict.free_bytes != row->free_bytes)
        fail_msg("%s: out of memory %d, requested %lld, free %lld", row->text, verdict.gpu_oom,
                 (long long)verdict.requested_bytes, (long long)verdict.free_bytes);
}

static void test_rows(void **state)
{
    for (size_t i = 0; i < array_size(rows); i++) {
        CLEANUP(free_ptr) char *within = xasprintf("Traceback (most recent call last):\n  File x\n%s\r\nbye\n",
                                                   rows[i].text);
        check(rows[i].text, strlen(rows[i].text), &rows[i]);
        check(within, strlen(within), &rows[i]);
    }
}

/* The text ends where its length says: no pattern is read on beyond, wherever it is cut. */
static void test_every_cut(void **state)
{
    for (size_t i = 0; i < array_size(rows); i++) {
        for (size_t length = 0; length < strlen(rows[i].text); length++) {
            char *exact = xmalloc(length ? length : 1); /* the sanitizer watches its end */
            struct classify_verdict verdict;
            memcpy(exact, rows[i].text, length);
            classify_output(exact, length, &verdict);
            free(exact);
        }
    }
}

static void test_latest_counts(void **state)
{
    static const char text[] = "RuntimeError: CUDA out of memory. Tried to allocate 1.00 GiB (GPU 0; x; 2.00 MiB free; y)\n"
                               "retry with less\n"
                               "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.00 GiB. of which "
                               "4.00 MiB is free.\nRuntimeError: CUDA error: out of memory\n";
    struct classify_verdict verdict;

    classify_output(text, sizeof text - 1, &verdict);
    assert_true(verdict.gpu_oom);
    assert_true(verdict.requested_bytes == 3 * GIB);
    assert_true(verdict.free_bytes == 4 * MIB);
    assert_string_equal(verdict.line, "RuntimeError: CUDA error: out of memory");
}

static void test_words_on_different_lines(void **state)
{
    static const char text[] = "OOM when allocating tensor with shape[8,3]\nfound device:GPU:0\n";
    struct classify_verdict verdict;

    classify_output(text, sizeof text - 1, &verdict);
    assert_false(verdict.gpu_oom);
}

static void test_hostile(void **state)
{
    size_t size = 1 << 20;
    CLEANUP(free_ptr) char *text = xmalloc(size);
    struct classify_verdict verdict;
    static const char message[] = "CUDA error: out of memory";
    clock_t begun = clock();

    memset(text, 'C', size); /* one line, and every byte may begin a pattern */
    classify_output(text, size, &verdict);
    assert_false(verdict.gpu_oom);
    for (size_t i = 0; i + 25 <= size; i += 25)
        memcpy(text + i, "CUDA error: out of memorY", 25);
    classify_output(text, size, &verdict);
    assert_false(verdict.gpu_oom);
    memset(text, 0, size);
    memcpy(text + size - sizeof message + 1, message, sizeof message - 1);
    classify_output(text, size, &verdict);
    assert_true(verdict.gpu_oom);
    assert_string_equal(verdict.line, message);
    srand(1);
    for (size_t i = 0; i < size; i++)
        text[i] = (char)rand();
    classify_output(text, size, &verdict);
    assert_false(verdict.gpu_oom);
    memset(text, '9', size);
    memcpy(text, "CUDA out of memory. Tried to allocate ", 38);
    classify_output(text, size, &verdict);
    assert_true(verdict.gpu_oom && verdict.requested_bytes == -1);
    memcpy(text, "OOM when allocating tensor with shape[", 38);
    memcpy(text + size - 12, "device:GPU:0", 12);
    classify_output(text, size, &verdict);
    assert_true(verdict.gpu_oom && verdict.requested_bytes == -1);
    assert_true(strlen(verdict.line) == sizeof verdict.line - 1);
    assert_true((double)(clock() - begun) / CLOCKS_PER_SEC < 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),       cmocka_unit_test(test_every_cut),
        cmocka_unit_test(test_latest_counts), cmocka_unit_test(test_words_on_different_lines),
        cmocka_unit_test(test_hostile),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
