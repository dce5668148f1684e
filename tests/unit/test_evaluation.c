/* Data sets become questions that agree with the files; hostile files are refused by line; figures of estimates. */
#include "unit.h"

#include "evaluation/evaluate.h"
#include "layer_sums.h"

#define FAKES CARMA_FAKES "/datasets/"
#define REAL  "real:" FAKES "real_models.csv," FAKES "real_model_layers.csv"

/* What a test reads. */
static struct dataset dataset;
static const struct dataset_row *row;
static const struct layer *layer;

AROUND(end)
{
    dataset_release(&dataset);
}

#define DATASET_TEST(name) TEST_BETWEEN(name, NULL, end)

static void read_set(const char *which, const char *captures)
{
    dataset_release(&dataset);
    fail_if(dataset_read(&dataset, which, captures, &trouble), trouble);
}

/* What a test writes as a data set of its own. */
static char path[] = "/tmp/carma-test-XXXXXX";

static int make_file(void **state)
{
    int fd = mkstemp(path);

    return fd < 0 ? -1 : close(fd);
}

static int remove_file(void **state)
{
    return unlink(path);
}

static void read_text(const char *kind, const char *text, size_t length)
{
    CLEANUP(free_ptr) char *which = xasprintf("%s:%s", kind, path);

    assert_int_equal(file_write_atomic(path, text, length, 0600, NULL), 0);
    read_set(which, NULL);
}

static int64_t parameters_of(const struct layer_list *list)
{
    int64_t sum = 0;

    for (size_t i = 0; i < list->count; i++)
        sum += list->items[i].container ? 0 : list->items[i].parameters;
    return sum;
}

static const struct layer *first_of(const struct layer_list *list, enum layer_kind kind)
{
    for (size_t i = 0; i < list->count; i++)
        if (list->items[i].kind == kind)
            return &list->items[i];
    fail_msg("no layer of kind %s", layer_kind_name(kind));
    return NULL;
}

DATASET_TEST(test_mlp)
{
    read_set("mlp:" FAKES "mlp.csv", NULL);
    assert_int_equal(dataset.count, 4);
    row = &dataset.rows[0];
    assert_string_equal(row->name, "mlp row 1");
    assert_string_equal(row->group, "pyramid");
    assert_int_equal(row->measured_bytes, 1451 * MIB);
    assert_int_equal(row->smact_permille, 125);
    assert_int_equal(row->smocc_permille, 50);
    assert_int_equal(row->training.batch_size, 32);
    assert_int_equal(row->training.samples, 4096);
    assert_true(row->training.summary_pass && row->training.summary_gradients);
    assert_int_equal(row->training.summary_batch, 2);
    assert_int_equal(row->layers.input[0], 100);
    /* 100 -> 50 -> 25 -> 12 -> 10, each hidden one with norm, activation and dropout */
    assert_int_equal(count_kind(&row->layers, LAYER_LINEAR), 4);
    assert_int_equal(count_kind(&row->layers, LAYER_DROPOUT), 3);
    assert_int_equal(row->layers.items[8].shape[0], 12);
    assert_int_equal(row->layers.items[8].in_channels, 25);
    assert_int_equal(row->layers.items[8].inputs[0], 7);
    assert_int_equal(row->layers.items[0].inputs[0], -1);
    assert_int_equal(row->layers.items[row->layers.count - 1].kind, LAYER_SOFTMAX);
    row = &dataset.rows[1];
    assert_int_equal(row->smact_permille, -1);
    assert_int_equal(first_of(&row->layers, LAYER_ACTIVATION)->parameters,
                     1); /* PReLU's, which the file does not count */
    row = &dataset.rows[2];
    assert_int_equal(row->layers.items[row->layers.count - 1].activation, ACTIVATION_SIGMOID);
}

DATASET_TEST(test_cnn)
{
    read_set("cnn:" FAKES "cnn.csv", NULL);
    assert_int_equal(dataset.count, 7);
    row = &dataset.rows[0];
    assert_int_equal(row->training.summary_batch, 2);
    assert_int_equal(row->training.batch_size, 8);
    assert_int_equal(row->training.samples, 0);
    layer = first_of(&row->layers, LAYER_CONV);
    assert_int_equal(layer->kernel[0], 3);
    assert_int_equal(layer->shape[1], 32);
    assert_true(layer->bias);
    for (size_t i = 0; i < dataset.count; i++)
        assert_true(dataset.rows[i].layers.connected);
    /* Four blocks; the second and the fourth halve 30 and 15; a sum takes the main branch and the shortcut. */
    row = &dataset.rows[5];
    assert_string_equal(row->group, "residual");
    assert_int_equal(count_kind(&row->layers, LAYER_ADD), 4);
    layer = first_of(&row->layers, LAYER_ADD);
    assert_int_equal(layer->input_count, 2);
    assert_int_equal(layer->inputs[1], 1); /* the shortcut's batch norm, which stands first */
    assert_int_equal(first_of(&row->layers, LAYER_AVG_POOL)->shape[0],
                     row->layers.items[row->layers.count - 3].shape[0]);
    assert_int_equal(row->layers.items[row->layers.count - 4].shape[1], 8);
    /* Three blocks; a transition behind the first alone: every second, and not behind the last. */
    row = &dataset.rows[6];
    assert_true(row->out_of_memory);
    assert_int_equal(count_kind(&row->layers, LAYER_CONCAT), 3 * 5);
    assert_int_equal(count_kind(&row->layers, LAYER_AVG_POOL), 2);
    layer = first_of(&row->layers, LAYER_AVG_POOL);
    assert_string_equal(layer->type, "AvgPool2d");
    assert_int_equal(layer->shape[0], (3 + 128) / 2);
    assert_int_equal(layer->shape[1], 112);
}

DATASET_TEST(test_transformer)
{
    read_set("transformer:" FAKES "transformer.csv", NULL);
    assert_int_equal(dataset.count, 3);
    row = &dataset.rows[0];
    assert_true(row->layers.input_is_index);
    layer = first_of(&row->layers, LAYER_ATTENTION);
    assert_int_equal(layer->heads, 4);
    assert_int_equal(layer->parameters, 4 * 64 * 65);
    /* torch.nn.TransformerEncoder(TransformerEncoderLayer(64, 4, 96), 2), and the layers around it */
    assert_int_equal(parameters_of(&row->layers),
                     5000 * 64 + 32 * 64 + 2 * (4 * 64 * 65 + 65 * 96 + 97 * 64 + 4 * 64) + 65 * 10);
    assert_int_equal(count_kind(&row->layers, LAYER_DROPOUT), 2 * 3);
    assert_int_equal(count_kind(&row->layers, LAYER_ADD), 1 + 2 * 2);
    assert_int_equal(row->training.samples, 1000);
    assert_true(dataset.rows[2].out_of_memory);
}

DATASET_TEST(test_real)
{
    read_set(REAL, NULL);
    assert_int_equal(dataset.count, 6);
    assert_int_equal(dataset.left_out, 1);
    row = &dataset.rows[0];
    assert_string_equal(row->name, "tinynet cifar100 32");
    assert_string_equal(row->group, "tinynet");
    assert_int_equal(row->measured_bytes, 1801 * MIB);
    assert_int_equal(row->published[1], (int64_t)llround(64.1 * (double)MIB));
    assert_int_equal(row->published[2], 8000 * MIB);
    assert_int_equal(dataset.rows[1].published[0], -1);
    assert_int_equal(row->layers.input[2], 32);
    assert_int_equal(count_kind(&row->layers, LAYER_ADD), 2);
    assert_int_equal(row->training.optimizer, OPTIMIZER_ADAM);
    assert_false(dataset.rows[2].has_layers);
    row = &dataset.rows[3]; /* BERT: the output layer's weight is the embedding's */
    assert_int_equal(row->training.optimizer, OPTIMIZER_ADAMW);
    assert_int_equal(parameters_of(&row->layers), 32 * 1000 + 1000 + 512 * 32 + 2 * 32 + 64 /* embeddings and output */
                                                      + 2 * (4 * 32 * 33 + 33 * 64 + 65 * 32 + 2 * 64) /* layers */
                                                      + 32 * 33 + 64 /* the head's own */);
    row = &dataset.rows[4]; /* GPT-2, half of the batch on each GPU */
    assert_int_equal(row->training.batch_size, 4);
    assert_int_equal(parameters_of(&row->layers),
                     32 * 1000 + 1024 * 32 + 64 + 2 * (33 * 96 + 32 * 33 + 33 * 128 + 129 * 32 + 2 * 64));
    row = &dataset.rows[5]; /* XLNet: the second stream has the first one's weights */
    assert_int_equal(parameters_of(&row->layers), 32 * 1000 + 1000 + 2 * (5 * 32 * 32 + 33 * 64 + 65 * 32 + 2 * 64));
}

/* The published sizes: 110 million (bert-base-cased with its head 108.3), 1558, 117 million parameters. */
DATASET_TEST(test_published_sizes)
{
    static const struct {
        const char *row;
        double millions;
    } models[] = {
        {"BERT_base,transformer,wiki,1,1,1,,,,,,12,768,3072,12,28996,512", 108.3},
        {"gpt2_xl,transformer,wiki,1,1,1,,,,,,48,1600,6400,25,50257,512", 1557.6},
        {"xlnet_base,transformer,wiki,1,1,1,,,,,,12,768,3072,12,32000,512", 116.7},
    };

    for (size_t i = 0; i < array_size(models); i++) {
        CLEANUP(free_ptr)
        char *text = xasprintf("model,domain,dataset,batch_size,gpus,actual_mb_thesis,actual_mib_carma_rad,"
                               "actual_gb_carma_readme,horus_mb,faketensor_mb,gpumemnet_mb,num_layers,hidden,ff,heads,"
                               "vocab,seq_len\n%s\n",
                               models[i].row);
        CLEANUP(free_ptr) char *which = xasprintf("real:%s," FAKES "real_model_layers.csv", path);
        assert_int_equal(file_write_atomic(path, text, strlen(text), 0600, NULL), 0);
        read_set(which, NULL);
        assert_true(fabs((double)parameters_of(&dataset.rows[0].layers) / 1e6 - models[i].millions) < 0.3);
    }
}

DATASET_TEST(test_timm)
{
    read_set("timm:" FAKES "timm.csv", NULL);
    assert_int_equal(dataset.count, 2);
    assert_null(dataset.rows[0].capture);
    assert_string_equal(dataset.rows[1].group, "other");
    assert_int_equal(dataset.rows[0].published[1], (int64_t)(14.5 * (double)MIB));
    read_set("timm:" FAKES "timm.csv", CARMA_FAKES);
    assert_int_equal(dataset.count, 1);
    assert_int_equal(dataset.left_out, 1);
    assert_non_null(dataset.rows[0].capture);
    assert_int_equal(dataset.rows[0].capture->program.batch_size, 32);
    assert_int_equal(dataset.rows[0].capture->optimizer, OPTIMIZER_MOMENTUM);
}

/* Less than a context and the tensors that fake tensors counted: out of memory, or broken off and left out. */
DATASET_TEST(test_timm_ends)
{
    const char *text = "model,batch_size,max_gpu_memory_mib,ft_last_mb\n"
                       "a,8,2429,1000\nb,8,2428,1000\nc,8,40399,38971\nd,8,40399,38972\ne,8,2000,\n";

    read_text("timm", text, strlen(text));
    assert_int_equal(dataset.count, 3);
    assert_int_equal(dataset.left_out, 2);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(dataset.rows[i].name[0], "ade"[i]);
        assert_int_equal(dataset.rows[i].out_of_memory, i == 1);
    }
    assert_int_equal(dataset.rows[0].training.optimizer, OPTIMIZER_MOMENTUM);
    assert_true(dataset.rows[0].training.weight_decay);
}

/* FNV-1a of the row's bytes, with neither line end. */
DATASET_TEST(test_keys)
{
    const char *text = "model,batch_size,max_gpu_memory_mib\nab,1,2\r\nab,1,2\ncd,1,2";
    uint64_t hash = UINT64_C(14695981039346656037);

    read_text("timm", text, strlen(text));
    for (const char *c = "ab,1,2"; *c; c++)
        hash = (hash ^ (unsigned char)*c) * UINT64_C(1099511628211);
    assert_true(dataset.rows[0].key == hash);
    assert_true(dataset.rows[1].key == hash);
    assert_true(dataset.rows[2].key != hash);
    assert_int_equal(dataset_fold(&dataset.rows[0]), hash % 5);
}

/* Each is the file of its kind with one row changed: the error names line and both figures. */
TEST(test_contradictions)
{
    static const struct {
        const char *kind, *from, *to, *line, *says;
    } cases[] = {
        {"mlp", "linear:25:1275", "linear:26:1275",
         ":2:", "layer 5 is Linear:26:1275, but the row's columns make it Linear:25:1275"},
        {"mlp", "linear:25:1275", "linear:25:1276",
         ":2:", "Linear:25:1276, but the row's columns make it Linear:25:1275"},
        {"mlp", "linear:25:1275", "linear:25", ":2:", "layer 5, 'linear:25|"},
        {"mlp", "linear:25:1275", "linear:25:99999999999999999999", ":2:", "is not type:activations:parameters"},
        {"mlp", "|Softmax:10:0", "", ":2:", "the list ends before layer 14, Softmax:10:0"},
        {"mlp", "|Softmax:10:0", "|Softmax:10:0|Softmax:10:0", ":2:", "more than the 14"},
        {"mlp", ",6941,", ",6942,", ":2:", "total_params 6942, but the row's columns make 6941"},
        {"mlp", "pyramid,100", "octagon,100", ":2:", "arch 'octagon'"},
        {"mlp", "pyramid,100,10,3", "pyramid,100,10,100000000", ":2:", "out of range"},
        {"mlp", "pyramid,100", "pyramid,-5", ":2:", "out of range"},
        {"mlp", "32,relu", "32,sine", ":2:", "activation 'sine'"},
        {"mlp", "32,relu", "0,relu", ":2:", "out of range"},
        {"mlp", ",1451,", ",0,", ":2:", "max_gpu_memory_mib 0 is out of range"},
        {"mlp", ",1451,", ",nan,", ":2:", "not a number"},
        {"mlp", ",0.125,", ",1.5,", ":2:", "avg_smact 1.5 is out of range"},
        {"mlp", "arch,", "shape,", ":1:", "unknown column 'shape'"},
        {"cnn", "SUCCESSFUL", "DONE", ":2:", "status 'DONE'"},
        {"cnn", "gelu,0.1,0,0,2", "gelu,0.1,0,0,0", ":8:", "no dense_pool_interval"},
        {"cnn", "gelu,0.1,0,0,2", "gelu,0.1,0,0,1",
         ":8:", "layer 19 is Conv2d:401408:55616, but the row's columns make it Conv2d:1204224:18624"},
        {"transformer", "10,64,2,4", "10,64,2,5", ":2:", "does not divide among 5 heads"},
        {"timm", "mlp,32", "../mlp,32", ":2:", "is not a name"},
        {"timm", "mlp,32", "mlp,many", ":2:", "not a whole number"},
    };

    for (size_t i = 0; i < array_size(cases); i++) {
        CLEANUP(free_ptr) char *source = xasprintf(FAKES "%s.csv", cases[i].kind), *text = NULL, *changed = NULL;
        CLEANUP(free_ptr) char *which = xasprintf("%s:%s", cases[i].kind, path);
        struct dataset refused;
        struct error err = {""};
        size_t length;

        assert_int_equal(file_read(source, 1 << 20, &text, &length, &err), 0);
        char *at = strstr(text, cases[i].from);
        if (!at)
            fail_msg("%s has no '%s'", source, cases[i].from);
        changed = xasprintf("%.*s%s%s", (int)(at - text), text, cases[i].to, at + strlen(cases[i].from));
        assert_int_equal(file_write_atomic(path, changed, strlen(changed), 0600, NULL), 0);
        if (dataset_read(&refused, which, NULL, &err) == 0)
            fail_msg("%s: '%s' was taken", cases[i].kind, cases[i].to);
        if (!strstr(err.text, cases[i].says) || !strstr(err.text, cases[i].line) || strchr(err.text, '\n'))
            fail_msg("'%s' instead of %s ... %s", err.text, cases[i].line, cases[i].says);
        assert_int_equal(refused.count, 0);
    }
}

TEST(test_refusals)
{
    char which[] = "mlp|mlp:|tree:x.csv|:x||real:" FAKES "real_models.csv|real:,x|mlp:/nonexistent/x.csv|"
                   "mlp:" FAKES "cnn.csv|cnn:" FAKES "mlp.csv|mlp:" FAKES,
         *rest = which;

    for (char *each; (each = strsep(&rest, "|"));) {
        struct dataset refused;
        struct error err = {""};
        assert_true(dataset_read(&refused, each, NULL, &err) < 0);
        assert_true(*err.text && !strchr(err.text, '\n'));
        assert_int_equal(refused.count, 0);
    }
}

/* A byte changed, a piece left out or doubled: read or refused, never anything else (the sanitizers watch). */
DATASET_TEST(test_damage)
{
    static const char *const kinds[] = {"mlp", "cnn", "transformer", "timm"};
    uint32_t random = 1;

    for (size_t i = 0; i < 600; i++) {
        CLEANUP(free_ptr) char *source = xasprintf(FAKES "%s.csv", kinds[i % 4]), *text = NULL;
        CLEANUP(free_ptr) char *which = xasprintf("%s:%s", kinds[i % 4], path);
        struct error err = {""};
        size_t length;

        assert_int_equal(file_read(source, 1 << 20, &text, &length, &err), 0);
        random = random * 1664525 + 1013904223;
        size_t at = (random >> 8) % length;
        size_t count = (random >> 4) % 9;
        count = count < length - at ? count : 1;
        if (i % 3 == 0)
            text[at] = (char)(random >> 24);
        else if (i % 3 == 1) {
            memmove(text + at, text + at + count, length - at - count);
            length -= count;
        } else
            text[at] = (char)('0' + (random >> 24) % 10);
        FILE *file = fopen(path, "w");
        assert_int_equal(fwrite(text, 1, length, file), length);
        fclose(file);
        if (dataset_read(&dataset, which, NULL, &err) == 0)
            dataset_release(&dataset);
        else
            assert_true(*err.text);
    }
}

TEST(test_metrics)
{
    /* Bins of 10 MiB below 35 MiB: 0, 1, 2, 3, and out of memory. */
    const struct metrics_row rows[] = {
        {10 * MIB, false, 11 * MIB, 12 * MIB}, /* right; +10%, answer +20% */
        {20 * MIB, false, 19 * MIB, 19 * MIB}, /* below; -5%, answer too low */
        {25 * MIB, false, 30 * MIB, 50 * MIB}, /* above; +20%, answer +100% */
        {8 * MIB, false, 9 * MIB, 8 * MIB},    /* right; +12.5%, answer just enough */
        {30 * MIB, true, 36 * MIB, 40 * MIB},  /* right: out of memory */
        {30 * MIB, true, 35 * MIB, 40 * MIB},  /* below: it just fits */
    };
    struct metrics metrics;

    metrics_compute(&metrics, rows, array_size(rows), 10 * MIB, 35 * MIB);
    assert_int_equal(metrics.rows, 6);
    assert_int_equal(metrics.out_of_memory, 2);
    assert_float_equal(metrics.bin_accuracy, 3.0 / 6, 1e-9);
    assert_float_equal(metrics.bin_below, 2.0 / 6, 1e-9);
    assert_float_equal(metrics.mae_mib, (1 + 1 + 5 + 1) / 4.0, 1e-9);
    assert_float_equal(metrics.mape, (0.1 + 0.05 + 0.2 + 0.125) / 4, 1e-9);
    assert_float_equal(metrics.median_ape, (0.1 + 0.125) / 2, 1e-9);
    assert_float_equal(metrics.worst_ape, 0.2, 1e-9);
    assert_float_equal(metrics.underestimate_rate, 1.0 / 4, 1e-9);
    assert_float_equal(metrics.mean_overestimate, (0.2 + 0 + 1 + 0) / 4, 1e-9);
    /* By class: 0: 1 of 1 guessed right, 1 of 1 found; 1: 1 of 2, 1 of 1; 2: never guessed, 0 of 2; memory: 1 of 1, 1
     * of 2 */
    assert_float_equal(metrics.precision, (1 * 1.0 + 1 * 0.5 + 2 * 0 + 2 * 1.0) / 6, 1e-9);
    assert_float_equal(metrics.recall, 3.0 / 6, 1e-9);
    assert_float_equal(metrics.f1, (1 * 1.0 + 1 * (2 * 0.5 / 1.5) + 2 * (2 * 0.5 / 1.5)) / 6, 1e-9);
    metrics_compute(&metrics, rows + 4, 2, 10 * MIB, 35 * MIB); /* no success: nothing to measure */
    assert_true(isnan(metrics.mae_mib) && isnan(metrics.underestimate_rate));
    assert_float_equal(metrics.bin_accuracy, 0.5, 1e-9);
    metrics_compute(&metrics, rows, 0, 10 * MIB, 35 * MIB);
    assert_true(isnan(metrics.bin_accuracy) && isnan(metrics.mape));
}

/* An estimator that knows its question. */
static int answer_asked(const struct estimate_question *question, struct estimate *estimate, struct error *err)
{
    if (!question->layers)
        return error_set(err, 95 /* ENOTSUP */, "no layers");
    assert_int_equal(question->quantile_permille, 900);
    assert_int_equal(question->fold, -1);
    estimate->median_bytes = 1800 * MIB;
    estimate->bytes = 1805 * MIB;
    estimate->smact_permille = -1;
    return 0;
}

static const struct estimator asked = {"horus", "a fake", answer_asked};

static int refuse(const struct estimate_question *question, struct estimate *estimate, struct error *err)
{
    return error_set(err, 95 /* ENOTSUP */, "it never knows");
}

static void count_progress(size_t done, size_t rows, void *context)
{
    *(size_t *)context += done == rows ? 100 : 1;
}

DATASET_TEST(test_evaluate)
{
    static const struct estimator never = {"never", "a fake", refuse};
    size_t calls = 0;
    struct evaluation_options options = {.estimator = &asked,
                                         .quantile_permille = 900,
                                         .bin_bytes = METRICS_BIN_GB_BYTES,
                                         .folds = true, /* it has no models that have seen rows */
                                         .progress = count_progress,
                                         .progress_context = &calls};
    struct evaluation evaluation;

    read_set(REAL, NULL);
    assert_int_equal(evaluate(&evaluation, &dataset, &options, &trouble), 0);
    assert_int_equal(evaluation.count, 6);
    assert_int_equal(evaluation.unanswered, 1);
    assert_int_equal(evaluation.metrics.rows, 5);
    assert_string_equal(evaluation.why_unanswered, "othernet cifar100 32: no layers");
    assert_int_equal(calls, 5 + 100);
    assert_false(evaluation.in_sample);
    assert_float_equal(evaluation.metrics.underestimate_rate, 1.0 / 5, 1e-9); /* of 1811 */
    assert_int_equal(evaluation.published_rows, 1);
    assert_float_equal(evaluation.published_mape, (1800 - 1348.8) / 1348.8, 1e-6);
    assert_int_equal(evaluation.smact_rows, 0);
    evaluation_release(&evaluation);
    options.estimator = &never;
    assert_true(evaluate(&evaluation, &dataset, &options, &trouble) < 0);
    assert_non_null(strstr(trouble.text, "none of the 6 rows"));
}

/* The published files, where they lie beside the repository: each row agrees with its layers. Rows are added. */
DATASET_TEST(test_published_files)
{
    static const struct {
        const char *which;
        size_t rows, layers, out_of_memory;
    } files[] = {
        {"mlp:" CARMA_PUBLISHED "/mlp.csv", 2400, 2400, 0},
        {"cnn:" CARMA_PUBLISHED "/cnn.csv", 1581, 1581, 303},
        {"transformer:" CARMA_PUBLISHED "/transformer.csv", 45, 45, 2},
        {"real:" CARMA_PUBLISHED "/real_models.csv," CARMA_PUBLISHED "/real_model_layers.csv", 28, 26, 0},
        {"timm:" CARMA_PUBLISHED "/timm_faketensor.csv", 3955, 0, 476},
    };

    if (access(CARMA_PUBLISHED "/cnn.csv", R_OK) != 0) {
        print_message("skipped: %s is not here\n", CARMA_PUBLISHED);
        skip();
    }
    for (size_t i = 0; i < array_size(files); i++) {
        size_t layers = 0, out_of_memory = 0;
        read_set(files[i].which, NULL);
        for (size_t j = 0; j < dataset.count; j++) {
            layers += dataset.rows[j].has_layers;
            out_of_memory += dataset.rows[j].out_of_memory;
            assert_true(!dataset.rows[j].has_layers ||
                        (dataset.rows[j].layers.connected && dataset.rows[j].layers.guessed == 0));
        }
        assert_in_range(dataset.count, files[i].rows, SIZE_MAX);
        assert_in_range(layers, files[i].layers, dataset.count);
        assert_in_range(out_of_memory, files[i].out_of_memory, dataset.count);
    }
}

/* Rows that the tables in data/models have seen: told, or asked of the fold's models. */
DATASET_TEST(test_seen_rows)
{
    struct evaluation_options options = {.quantile_permille = 900, .bin_bytes = METRICS_BIN_GB_BYTES};
    CLEANUP(free_ptr) char *text = NULL;
    struct evaluation evaluation;
    size_t length, lines = 0, end = 0;

    if (access(CARMA_PUBLISHED "/mlp.csv", R_OK) != 0) {
        print_message("skipped: %s is not here\n", CARMA_PUBLISHED);
        skip();
    }
    assert_int_equal(file_read(CARMA_PUBLISHED "/mlp.csv", 64 << 20, &text, &length, &trouble), 0);
    while (lines < 12)
        lines += text[end++] == '\n';
    read_text("mlp", text, end);
    for (int folds = 0; folds < 2; folds++) {
        const struct estimator *const tables[] = {&estimator_gpumemnet, &estimator_auto};
        for (size_t i = 0; i < array_size(tables); i++) {
            options.estimator = tables[i];
            options.folds = folds;
            assert_int_equal(evaluate(&evaluation, &dataset, &options, &trouble), 0);
            assert_int_equal(evaluation.in_sample, !folds);
            assert_int_equal(evaluation.metrics.rows, 11);
            for (size_t j = 0; j < evaluation.count; j++) {
                assert_true(evaluation.rows[j].seen);
                assert_int_equal(evaluation.rows[j].fold, folds ? dataset_fold(&dataset.rows[j]) : -1);
            }
            evaluation_release(&evaluation);
        }
    }
    options.estimator = &estimator_horus; /* a formula */
    options.folds = false;
    assert_int_equal(evaluate(&evaluation, &dataset, &options, &trouble), 0);
    assert_false(evaluation.in_sample);
    evaluation_release(&evaluation);
}

RUN_TESTS(make_file, remove_file)
