/* Boosted trees: the same sums as in Python, for all arrays. */
#include "unit.h"

#include "estimate/learned/trees.h"

/* tests/golden/trees.bin; python/carma_train/trees_golden.py wrote it. */
static unsigned char *golden;
static struct model golden_model;

static int read_golden(void **state)
{
    FILE *file = fopen(CARMA_GOLDEN "/trees.bin", "rb");
    long length;

    if (!file || fseek(file, 0, SEEK_END) || (length = ftell(file)) < 0)
        return -1;
    rewind(file);
    golden = xmalloc((size_t)length);
    golden_model = (struct model){golden, fread(golden, 1, (size_t)length, file)};
    fclose(file);
    return golden_model.length == (size_t)length ? 0 : -1;
}

AROUND(free_golden)
{
    free(golden);
}

TEST(sums_are_those_of_python)
{
    struct model_array rows = model_array(golden_model, "rows", MODEL_F32);
    struct model_array expected = model_array(golden_model, "expected", MODEL_F32);
    struct trees trees;

    assert_int_equal(trees_find(&trees, golden_model, "all/test"), 0);
    assert_int_equal(trees.tree_count, 24);
    assert_true(expected.count > 100);
    for (size_t i = 0; i < expected.count; i++) {
        double sum = trees_sum(&trees, (const float *)rows.data + i * rows.dims[1], rows.dims[1]);
        assert_true(fabs(sum - (double)((const float *)expected.data)[i]) < 1e-5);
    }
}

/* A table's entry is its name (48 bytes), type and rank, then the sizes. */
static const char *const arrays_of_different_lengths_are_no_trees_rows[] = {"feature", "value", "right", "start"};

EACH_ROW(TEST, arrays_of_different_lengths_are_no_trees, arrays_of_different_lengths_are_no_trees_rows)
{
    CLEANUP(free_ptr) unsigned char *bytes = xmalloc(golden_model.length);
    struct model model = {bytes, golden_model.length};
    struct trees trees;
    char name[32];
    uint32_t size;

    memcpy(bytes, golden_model.data, golden_model.length);
    snprintf(name, sizeof name, "all/test/%s", *row);
    unsigned char *entry = memmem(bytes, golden_model.length, name, strlen(name) + 1);
    assert_non_null(entry);
    memcpy(&size, entry + 56, sizeof size);
    size--;
    memcpy(entry + 56, &size, sizeof size);
    assert_int_equal(trees_find(&trees, model, "all/test"), -EINVAL);
    entry[0] = 'A'; /* and one that is missing */
    assert_int_equal(trees_find(&trees, model, "all/test"), -EINVAL);
}

TEST(missing_trees_are_told_from_broken_ones)
{
    struct trees trees;

    assert_int_equal(trees_find(&trees, golden_model, "all/other"), -ENOENT);
    assert_int_equal(trees_find(&trees, (struct model){0}, "all/test"), -ENOENT);
    assert_int_equal(trees_find(&trees, golden_model, "a-prefix-that-no-array-of-a-table-can-ever-begin-with"),
                     -ENOENT);
}

/* One tree: feature 0 at most 1.5 -> 10; else feature 1 at most -2 -> 20, else 30. */
static const int32_t roots[] = {0};
static const uint16_t feature[] = {0, TREES_LEAF, 1, TREES_LEAF, TREES_LEAF};
static const uint16_t right[] = {2, 0, 2, 0, 0};
static const float value[] = {1.5f, 10, -2, 20, 30};
static const struct trees tree = {roots, feature, right, value, 1, 5, 0.25f};

static double sum_of(const struct trees *trees, float first, float second)
{
    return trees_sum(trees, (const float[]){first, second}, 2);
}

TEST(tree_goes_left_up_to_its_threshold)
{
    assert_true(sum_of(&tree, 1.5f, 0) == 10.25);
    assert_true(sum_of(&tree, 1.5000001f, -2) == 20.25);
    assert_true(sum_of(&tree, 2, -1.9f) == 30.25);
}

TEST(hostile_trees_end_and_read_nothing_else)
{
    const int32_t bad_roots[] = {-1, 5, INT32_MAX, INT32_MIN, 0};
    const uint16_t backwards[] = {0, 0, 0, 0, 0};
    const uint16_t beyond[] = {UINT16_MAX - 1, 0, UINT16_MAX - 1, 0, 0};
    const uint16_t endless[] = {0, 0, 0, 0, 0}, other_feature[] = {0, TREES_LEAF, 2, TREES_LEAF, TREES_LEAF};
    struct trees trees = tree;

    trees.roots = bad_roots;
    trees.tree_count = 5;
    assert_true(sum_of(&trees, 0, 0) == 10.25); /* the last one alone */
    trees = tree;
    trees.right = backwards;
    assert_true(sum_of(&trees, 2, 0) == 0.25);
    trees.right = beyond;
    assert_true(sum_of(&trees, 2, 0) == 0.25);
    trees = tree;
    trees.feature = endless; /* no leaf at all */
    assert_true(sum_of(&trees, 0, 0) == 0.25);
    trees.feature = other_feature;
    assert_true(sum_of(&trees, 2, 0) == 0.25);
    assert_true(sum_of(&tree, NAN, NAN) == 30.25);
}

/* A table of one u64 array "features". */
static void write_features(unsigned char bytes[112], uint64_t hash)
{
    static const char magic[16] = "carma-model 1\n\0";
    uint32_t count = 1, type = MODEL_U64, rank = 1, dims[4] = {1};
    uint64_t offset = 104;

    memset(bytes, 0, 112);
    memcpy(bytes, magic, sizeof magic);
    memcpy(bytes + 16, &count, 4);
    memcpy(bytes + 24, "features", 8);
    memcpy(bytes + 72, &type, 4);
    memcpy(bytes + 76, &rank, 4);
    memcpy(bytes + 80, dims, sizeof dims);
    memcpy(bytes + 96, &offset, 8);
    memcpy(bytes + 104, &hash, 8);
}

TEST(table_says_which_features_it_is_of)
{
    static const char *const names[] = {"a", "b"}, *const swapped[] = {"b", "a"}, *const joined[] = {"a,b"};
    _Alignas(8) unsigned char bytes[112];
    struct model model = {bytes, sizeof bytes};

    write_features(bytes, UINT64_C(0x587e57826f60363e)); /* FNV-1a of "a,b,", worked out by Python */
    assert_true(trees_are_of(model, names, 2));
    assert_true(trees_are_of(model, joined, 1)); /* names have no commas */
    assert_false(trees_are_of(model, swapped, 2));
    assert_false(trees_are_of(model, names, 1));
    assert_false(trees_are_of((struct model){0}, names, 2));
}

RUN_TESTS(read_golden, free_golden)
