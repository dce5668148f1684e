/* The sliding window against a model that keeps every sample. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>

#include "../property/random.h"
#include "base/memory.h"
#include "base/units.h"
#include "gpu/window.h"

#define MODEL_MAX 4096

struct model {
    int64_t length_ns;
    size_t count;
    struct {
        int64_t at_ns;
        int32_t permille;
    } samples[MODEL_MAX];
};

static void model_push(struct model *model, int64_t at_ns, int32_t permille)
{
    if (permille < 0)
        return;
    assert_true(model->count < MODEL_MAX);
    model->samples[model->count].at_ns = at_ns;
    model->samples[model->count++].permille = permille;
}

/* Sum and number of the samples in (from_ns, to_ns]. */
static int64_t model_sum(const struct model *model, int64_t from_ns, int64_t to_ns, int64_t *count)
{
    int64_t sum = 0;

    *count = 0;
    for (size_t i = 0; i < model->count; i++) {
        if (model->samples[i].at_ns > from_ns && model->samples[i].at_ns <= to_ns) {
            sum += model->samples[i].permille;
            ++*count;
        }
    }
    return sum;
}

static void test_empty_and_unmeasured(void **state)
{
    struct gpu_window window;
    int64_t count = 77;

    gpu_window_init(&window, NS_PER_SEC);
    assert_int_equal(gpu_window_mean(&window, 0, &count), -1);
    assert_int_equal(count, 0);
    gpu_window_push(&window, 10, -1);
    assert_int_equal(gpu_window_mean(&window, 10, &count), -1);
    gpu_window_push(&window, 20, 0); /* zero is a measurement */
    assert_int_equal(gpu_window_mean(&window, 20, &count), 0);
    assert_int_equal(count, 1);
    assert_int_equal(gpu_window_mean(&window, 20, NULL), 0);
}

static void test_edges_and_rounding(void **state)
{
    struct gpu_window window;
    int64_t count;

    gpu_window_init(&window, 90 * NS_PER_SEC);
    gpu_window_push(&window, 100 * NS_PER_SEC, 100);
    gpu_window_push(&window, 101 * NS_PER_SEC, 201);
    assert_int_equal(gpu_window_mean(&window, 101 * NS_PER_SEC, &count), 151); /* 150.5 */
    assert_int_equal(count, 2);
    assert_int_equal(gpu_window_mean(&window, 190 * NS_PER_SEC - 1, &count), 151);
    assert_int_equal(gpu_window_mean(&window, 190 * NS_PER_SEC, &count), 201); /* the first has just left */
    assert_int_equal(gpu_window_mean(&window, 191 * NS_PER_SEC, &count), -1);
    assert_int_equal(gpu_window_mean(&window, 100 * NS_PER_SEC, &count), 100); /* the second is still to come */
}

/* Sparse samples: exactly the model, through unmeasured samples and for longer than the ring. */
static void test_sparse_samples_are_exact(void **state)
{
    struct random random = {99};
    struct model *model = xcalloc(1, sizeof *model);

    print_message("seed %llu\n", (unsigned long long)random.state);
    for (int round = 0; round < 20; round++) {
        struct gpu_window window;
        int64_t spacing_ns, now_ns = 1000;
        model->count = 0;
        model->length_ns = random_range(&random, GPU_WINDOW_SLOTS, 1000000);
        spacing_ns = (model->length_ns + GPU_WINDOW_SLOTS - 1) / GPU_WINDOW_SLOTS;
        gpu_window_init(&window, model->length_ns);
        for (int i = 0; i < 1500; i++) {
            int64_t sum, count, wanted;
            int32_t permille = (int32_t)random_range(&random, -100, 1000);
            now_ns += random_range(&random, spacing_ns, 3 * spacing_ns);
            model_push(model, now_ns, permille);
            gpu_window_push(&window, now_ns, permille);
            sum = model_sum(model, now_ns - model->length_ns, now_ns, &wanted);
            assert_int_equal(gpu_window_mean(&window, now_ns, &count), wanted ? (sum + wanted / 2) / wanted : -1);
            assert_int_equal(count, wanted);
        }
    }
    free(model);
}

/* Samples of any density: a slot leaves as a whole, so what is counted is the samples of the window less at most those
 * of one slot's width at its old end; and none is lost otherwise. */
static void test_dense_samples_lose_one_slot_at_most(void **state)
{
    struct random random = {123456};
    struct model *model = xcalloc(1, sizeof *model);

    print_message("seed %llu\n", (unsigned long long)random.state);
    for (int round = 0; round < 20; round++) {
        struct gpu_window window;
        int64_t spacing_ns, now_ns = 0;
        model->count = 0;
        model->length_ns = random_range(&random, 10, 100000);
        spacing_ns = (model->length_ns + GPU_WINDOW_SLOTS - 1) / GPU_WINDOW_SLOTS;
        gpu_window_init(&window, model->length_ns);
        for (int i = 0; i < 2000; i++) {
            int64_t all, fewest, count;
            int32_t permille = (int32_t)random_range(&random, 0, 1000);
            now_ns += random_range(&random, 0, 1 + model->length_ns / 500);
            model_push(model, now_ns, permille);
            gpu_window_push(&window, now_ns, permille);
            model_sum(model, now_ns - model->length_ns, now_ns, &all);
            model_sum(model, now_ns - model->length_ns + spacing_ns, now_ns, &fewest);
            assert_in_range(gpu_window_mean(&window, now_ns, &count), 0, 1000);
            assert_in_range(count, fewest, all);
        }
    }
    free(model);
}

static void test_a_clock_set_back(void **state)
{
    struct gpu_window window;
    int64_t count;

    gpu_window_init(&window, 90 * NS_PER_SEC);
    for (int i = 1; i <= 10; i++)
        gpu_window_push(&window, i * NS_PER_SEC, 100 * i);
    gpu_window_push(&window, 3 * NS_PER_SEC + 5, -1); /* it need not be measured to tell the time */
    assert_int_equal(gpu_window_mean(&window, 20 * NS_PER_SEC, &count), 200);
    assert_int_equal(count, 3);
    gpu_window_push(&window, 1, 70);
    assert_int_equal(gpu_window_mean(&window, 20 * NS_PER_SEC, &count), 70);
    assert_int_equal(count, 1);
}

/* Many samples at one time are all in the mean: none is dropped to fit. */
static void test_thinning_keeps_the_sum(void **state)
{
    struct gpu_window window;
    int64_t count;

    gpu_window_init(&window, 1000 * GPU_WINDOW_SLOTS);
    for (int i = 0; i < 1000; i++)
        gpu_window_push(&window, 5000, i < 750 ? 1000 : 0);
    assert_int_equal(gpu_window_mean(&window, 5000, &count), 750);
    assert_int_equal(count, 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_empty_and_unmeasured),     cmocka_unit_test(test_edges_and_rounding),
        cmocka_unit_test(test_sparse_samples_are_exact), cmocka_unit_test(test_dense_samples_lose_one_slot_at_most),
        cmocka_unit_test(test_a_clock_set_back),         cmocka_unit_test(test_thinning_keeps_the_sum),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
