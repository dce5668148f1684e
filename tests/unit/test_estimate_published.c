/* The published estimators against the thesis's columns for real models (../shared/data/gpumemnet, if there). */
#include "unit.h"

#include "evaluation/dataset.h"

static struct dataset dataset;
static bool there;

static int set_up(void **state)
{
    (void)state;
    there = access(CARMA_REAL_MODELS, R_OK) == 0;
    if (!there) {
        printf("skipped: there is no " CARMA_REAL_MODELS "\n");
        return 0;
    }
    return dataset_read(&dataset, "real:" CARMA_REAL_MODELS "," CARMA_REAL_LAYERS, NULL, &trouble);
}

AROUND(tear_down)
{
    if (there)
        dataset_release(&dataset);
}

static bool is_cnn(const struct dataset_row *row)
{
    for (size_t i = 0; row->has_layers && i < row->layers.count; i++)
        if (row->layers.items[i].kind == LAYER_CONV)
            return true;
    return false;
}

/* |estimate / published - 1| of a CNN's row. */
static double off(const struct dataset_row *row, const struct estimator *estimator, int published)
{
    struct estimate_question question = {.layers = &row->layers,
                                         .training = row->training,
                                         .profile = dataset.profile,
                                         .declared_bytes = -1,
                                         .quantile_permille = 500,
                                         .fold = -1};
    struct estimate result;

    assert_int_equal(estimate(estimator, &question, &result, &trouble), 0);
    return (double)result.bytes / (double)row->published[published] - 1;
}

/* The layers of Inception are listed for images of 299 x 299, its published figures are FakeTensor's for 224 x 224. */
static void shrink_inception(struct layer_list *layers)
{
    static const int64_t sides[][2] = {{299, 224}, {149, 111}, {147, 109}, {73, 54},
                                       {71, 52},   {35, 25},   {17, 12},   {8, 5}};

    for (int d = 1; d < 3; d++)
        layers->input[d] = 224;
    for (size_t i = 0; i < layers->count; i++)
        for (int d = 1; d < layers->items[i].rank; d++)
            for (size_t s = 0; s < array_size(sides); s++)
                if (layers->items[i].shape[d] == sides[s][0]) {
                    layers->items[i].shape[d] = sides[s][1];
                    break;
                }
}

static void check(const struct estimator *estimator, int published, double most, double nearly_all, size_t exceptions)
{
    size_t count = 0, beyond = 0;

    for (size_t i = 0; i < dataset.count; i++) {
        struct dataset_row *row = &dataset.rows[i];
        if (published == 1 && strcmp(row->group, "inception") == 0)
            shrink_inception(&row->layers);
        if (!is_cnn(row) || row->published[published] < 0)
            continue;
        double error = off(row, estimator, published);
        printf("%s: %s: %+.2f%%\n", estimator->name, row->name, 100 * error);
        assert_true(fabs(error) < most);
        beyond += fabs(error) > nearly_all;
        count++;
    }
    assert_int_equal(count, 21);
    assert_true(beyond <= exceptions);
}

TEST(horus_agrees)
{
    if (!there)
        skip();
    check(&estimator_horus, 0, 0.02, 0.001, 1);
}

TEST(faketensor_agrees)
{
    if (!there)
        skip();
    check(&estimator_faketensor, 1, 0.11, 0.02, 3);
}

RUN_TESTS(set_up, tear_down)
