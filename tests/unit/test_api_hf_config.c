/* config.json of published models: their counts of parameters are exact; and how they are trained. */
#include "unit.h"

#include "api/hf/config.h"
#include "api/hf/lengths.h"
#include "api/hf/training.h"
#include "api/spec.h"
#include "estimate/program/replay.h"
#include "estimate/program/workspace.h"

#define WITHOUT_INNER(width, layers, heads)                                                                            \
    "\"hidden_size\": " #width ", \"num_hidden_layers\": " #layers ", \"num_attention_heads\": " #heads
#define SIZES(width, layers, heads, inner) WITHOUT_INNER(width, layers, heads) ", \"intermediate_size\": " #inner
#define BERT_SIZES                         SIZES(768, 12, 12, 3072)
#define AS(type)                           ", \"architectures\": [\"" type "\"]"
#define KV_HEADS(n)                        ", \"num_key_value_heads\": " #n
#define HEAD_WIDTH(n)                      ", \"head_dim\": " #n
#define WORDS(n)                           ", \"vocab_size\": " #n
#define TIED                               ", \"tie_word_embeddings\": true"
#define SMALL                              SIZES(256, 4, 8, 1024) WORDS(1000)

/* Behind and not before a layer, and with a narrower embedding. */
#define NORMS_BEHIND ", \"word_embed_proj_dim\": 512, \"do_layer_norm_before\": false"

#define T5_SIZES "\"d_model\": 512, \"num_layers\": 6, \"num_heads\": 8, \"d_kv\": 64, \"d_ff\": 2048"

static const struct {
    const char *type, *members;
    int64_t parameters;
} published[] = {
    {"gpt2", "\"n_embd\": 768, \"n_layer\": 12, \"n_head\": 12" WORDS(50257), 124439808},
    {"bert", BERT_SIZES AS("BertModel"), 109482240},
    {"bert", BERT_SIZES AS("BertForMaskedLM"), 109514298},
    {"roberta", BERT_SIZES ", \"max_position_embeddings\": 514, \"type_vocab_size\": 1" AS("RobertaForMaskedLM"),
     124697433},
    {"distilbert", "\"dim\": 768, \"n_layers\": 6, \"n_heads\": 12, \"hidden_dim\": 3072" AS("DistilBertForMaskedLM"),
     66985530},
    {"llama", SIZES(4096, 32, 32, 11008) WORDS(32000), 6738415616},
    {"mistral", SIZES(4096, 32, 32, 14336) KV_HEADS(8) WORDS(32000), 7241732096},
    {"qwen2", SIZES(896, 24, 14, 4864) KV_HEADS(2) WORDS(151936) TIED, 494032768},
    {"qwen3", SIZES(1024, 28, 16, 3072) KV_HEADS(8) HEAD_WIDTH(128) WORDS(151936) TIED, 596049920},
    {"gemma", SIZES(2048, 18, 8, 16384) KV_HEADS(1) HEAD_WIDTH(256), 2506172416},
    {"gemma2", SIZES(2304, 26, 8, 9216) KV_HEADS(4) HEAD_WIDTH(256), 2614341888},
    {"t5", T5_SIZES AS("T5ForConditionalGeneration"), 60506624},
    {"vit", BERT_SIZES AS("ViTForImageClassification") ", \"num_labels\": 1000", 86567656},
    {"gpt_neox", BERT_SIZES WORDS(50304) ", \"tie_word_embeddings\": false", 162322944},
    {"gpt_neo", "\"hidden_size\": 768, \"num_layers\": 12, \"num_heads\": 12" WORDS(50257), 125198592},
    {"opt", WITHOUT_INNER(768, 12, 12) ", \"ffn_dim\": 3072" WORDS(50272), 125239296},
    {"opt", WITHOUT_INNER(1024, 24, 16) ", \"ffn_dim\": 4096" WORDS(50272) NORMS_BEHIND, 331196416},
    {"phi", SIZES(2560, 32, 32, 10240) WORDS(51200), 2779683840},
    {"phi3", SIZES(3072, 32, 32, 8192) WORDS(32064), 3821079552},
};

TEST(test_parameters)
{
    for (size_t i = 0; i < array_size(published); i++) {
        CLEANUP(free_ptr)
        char *text = xasprintf("{\"model_type\": \"%s\", %s}", published[i].type, published[i].members);
        struct transformer transformer;
        struct error why;
        fail_if(hf_config_read(&transformer, published[i].type, text, strlen(text), &why), why);
        if (transformer_parameters(&transformer) != published[i].parameters)
            fail_msg("%s: %lld parameters, not %lld", published[i].type,
                     (long long)transformer_parameters(&transformer), (long long)published[i].parameters);
    }
}

static void refuse(const char *text, const char *expected)
{
    struct transformer transformer;
    struct error why;

    assert_int_equal(hf_config_read(&transformer, "c.json", text, strlen(text), &why), -EINVAL);
    assert_has(why.text, expected);
}

TEST(test_refused)
{
    refuse("{", "c.json: not JSON in line 1, byte 1: ");
    refuse("[]", "c.json: not a JSON object: it is another value");
    refuse("{}", "c.json: no \"model_type\"");
    refuse("{\"model_type\": \"mamba\"}", "c.json: model_type 'mamba' is not known; give a capture. Known: gpt2, ");
    refuse("{\"model_type\": \"llama\"}", "c.json: a configuration of llama needs hidden_size");
    refuse("{\"model_type\": \"llama\", \"hidden_size\": \"8\"}", "c.json: hidden_size is not a number from 1 to");
    refuse("{\"model_type\": \"llama\", " SMALL ", \"num_key_value_heads\": 3}", "8 heads do not fit");
    refuse("{\"model_type\": \"llama\", " SMALL ", \"hidden_act\": \"xielu\"}", "activation 'xielu' is not known");
    refuse("{\"model_type\": \"llama\", " SMALL ", \"architectures\": [\"LlamaForMusic\"]}",
           "architecture 'LlamaForMusic' is not known");
}

/* Of a training. */
static struct job_spec spec;
static struct capture capture;

/* Describes one of the model, with nothing said of it. */
static void begin(char *model, const char *method, int64_t batch_size, int64_t sequence_length)
{
    job_spec_release(&spec);
    job_spec_init(&spec);
    spec.hf_config = model;
    spec.method = xstrdup(method);
    spec.batch_size = batch_size;
    spec.sequence_length = sequence_length;
}

static int make(int64_t *events_left)
{
    struct transformer transformer;
    struct method how;

    return hf_training_capture(&capture, &transformer, &how, &spec, events_left, &trouble);
}

/* Most bytes at the peak, and these by category, of a small Llama trained so. */
static struct replay_result train_batch(int64_t batch_size, const char *method, const char *precision,
                                        const char *optimizer)
{
    struct replay_options options = {.rule = workspace_rule_default()};
    struct replay_result result;

    begin(xstrdup("{\"model_type\": \"llama\", " SMALL "}"), method, batch_size, 128);
    spec.precision = xstrdup(precision);
    spec.optimizer = xstrdup(optimizer);
    fail_if(make(&(int64_t){PROGRAM_MAX_EVENTS}), trouble);
    program_replay(&capture.program, &options, &result);
    capture_release(&capture);
    return result;
}

static struct replay_result train(const char *method, const char *precision, const char *optimizer)
{
    return train_batch(8, method, precision, optimizer);
}

#define PARAMETERS INT64_C(4708608) /* of that Llama */
#define LOGITS     INT64_C(1024000)
#define ROOT       ((2 * 1000 + 1) * INT64_C(256))

TEST(test_methods)
{
    struct replay_result full = train("full", "fp32", "sgd"), other;

    assert_true(full.at_peak[MEMORY_PARAMETER] == PARAMETERS * 4);
    assert_true(train("full", "bf16", "sgd").at_peak[MEMORY_PARAMETER] == PARAMETERS * 2);
    assert_true(train("full", "fp32", "adamw").at_peak[MEMORY_OPTIMIZER] >= PARAMETERS * 8);
    assert_true(train_batch(1, "full", "fp32", "adamw_fused").peak_allocated_bytes <
                train_batch(1, "full", "fp32", "adamw").peak_allocated_bytes);
    assert_true(train("full", "fp32", "adamw_8bit").at_peak[MEMORY_OPTIMIZER] < PARAMETERS * 3);
    assert_true(train("half_loss", "bf16", "sgd").peak_allocated_bytes <
                train("full", "bf16", "sgd").peak_allocated_bytes);
    other = train("mean_length=100", "fp32", "sgd"); /* cut at 128: no batch is longer */
    assert_true(other.peak_tensor_bytes == full.peak_tensor_bytes);
    assert_true(train("mean_length=100,drop_longer", "fp32", "sgd").peak_tensor_bytes < full.peak_tensor_bytes);
    assert_true(train("mean_length=20", "fp32", "sgd").peak_allocated_bytes < full.peak_allocated_bytes);
    assert_true(train("eager", "fp32", "sgd").peak_allocated_bytes > full.peak_allocated_bytes);
    assert_true(train("checkpointing", "fp32", "sgd").at_peak[MEMORY_ACTIVATION] < full.at_peak[MEMORY_ACTIVATION] / 2);

    other = train("lora,rank=8", "fp32", "sgd"); /* two matrices beside the queries' and the values' in each layer */
    assert_true(other.at_peak[MEMORY_PARAMETER] == (PARAMETERS + 4 * 2 * 2 * 8 * 256) * 4);
    assert_true(other.at_peak[MEMORY_GRADIENT] <= 4 * 2 * 2 * 8 * 256 * 4);
    assert_true(train_batch(1, "lora,rank=8", "fp32", "adamw").at_peak[MEMORY_OPTIMIZER] <= 4 * 2 * 2 * 8 * 256 * 8);
    other = train("lora,rank=16,targets=all", "fp32", "adamw");
    assert_true(other.at_peak[MEMORY_PARAMETER] == (PARAMETERS + 4 * 16 * (4 * 512 + 3 * 1280)) * 4);
    /* 4 bits and a byte for every 64 of them */
    other = train("qlora", "bf16", "adamw");
    assert_true(other.at_peak[MEMORY_PARAMETER] < train("lora", "bf16", "adamw").at_peak[MEMORY_PARAMETER]);
    /* bf16 is every tensor's that is not packed; under autocast the plain ones are in full precision */
    assert_true(other.at_peak[MEMORY_PARAMETER] < train("qlora", "amp", "adamw").at_peak[MEMORY_PARAMETER]);
    other = train("lora,rank=8,adapter_bf16,adapter_dropout", "bf16", "sgd");
    assert_true(other.at_peak[MEMORY_PARAMETER] == (PARAMETERS + 4 * 2 * 2 * 8 * 256) * 2);
    assert_true(other.at_peak[MEMORY_ACTIVATION] <
                train("lora,rank=8,adapter_dropout", "bf16", "sgd").at_peak[MEMORY_ACTIVATION]);
}

static int64_t peak_of(const char *method)
{
    return train(method, "bf16", "sgd").peak_allocated_bytes;
}

/* Logits that the loop holds are beside the loss's two tensors of their size in the backward pass. By parts there is
 * one, in full precision as well, and the logits in the precision in which they are handed out. */
TEST(test_logits)
{
    /* three of the logits' size in full precision; or one, two eighths of it, their gradient in half and the tokens'
     * losses */
    assert_int_equal(peak_of("lora") - peak_of("lora,chunked_loss"),
                     LOGITS * (3 * 4 - 4 - 2 * 4 / 8 - 2) - 8 * 128 * 4);
    assert_int_equal(peak_of("lora,held_logits") - peak_of("lora"), LOGITS * 4);
    /* of one batch: the loop lets go of those before */
    assert_int_equal(peak_of("lora,checkpointing,kept_output") - peak_of("lora,checkpointing"), LOGITS * 2);
    assert_true(peak_of("lora,kept_output") - peak_of("lora") > LOGITS * 2); /* keys and values of two batches */
    /* where heads are copied for a product, those that the loop holds are there beside the copies */
    for (int i = 0; i < 2; i++)
        assert_true(peak_of(i ? "lora,eager,kept_output" : "lora,contiguous,kept_output") -
                        peak_of(i ? "lora,eager" : "lora,contiguous") >=
                    peak_of("lora,kept_output") - peak_of("lora") + 4 * 8 * 128 * (256 + 256) * 2);
    assert_int_equal(peak_of("lora,chunked_loss,held_logits") - peak_of("lora,chunked_loss"), LOGITS * 2);
}

/* Of each GPU's share: ZeRO 1 the optimizer's states, 2 the gradients as well, 3 the parameters as well. */
TEST(test_shares)
{
    static const char *const names[] = {"world=4", "zero1,world=4", "zero2,world=4", "zero3,world=4", "fsdp,world=4"};
    struct replay_result stage[array_size(names)];

    for (size_t i = 0; i < array_size(names); i++)
        stage[i] = train_batch(1, names[i], "fp32", "adamw_fused");
    assert_true(stage[0].at_peak[MEMORY_OPTIMIZER] == PARAMETERS * 8);
    assert_true(stage[1].at_peak[MEMORY_OPTIMIZER] == PARAMETERS * 2);
    assert_true(stage[1].at_peak[MEMORY_PARAMETER] == PARAMETERS * 4);
    assert_true(stage[2].at_peak[MEMORY_GRADIENT] < stage[1].at_peak[MEMORY_GRADIENT]);
    assert_true(stage[3].at_peak[MEMORY_PARAMETER] < stage[2].at_peak[MEMORY_PARAMETER]);
    assert_true(stage[4].peak_allocated_bytes < stage[0].peak_allocated_bytes);
    /* FSDP's own mixed precision has parameters in full precision, as DeepSpeed has; FSDP of a bf16 model has not */
    assert_true(train_batch(1, "fsdp,world=4", "bf16", "adamw_fused").at_peak[MEMORY_OPTIMIZER] == PARAMETERS);
    assert_true(train_batch(1, "fsdp,world=4", "amp", "adamw_fused").at_peak[MEMORY_OPTIMIZER] == PARAMETERS * 3);
    /* two blocks are whole, and the root: the embedding, the head and the norm before it */
    assert_true(train_batch(1, "fsdp,world=4", "bf16", "adamw_fused").at_peak[MEMORY_PARAMETER] ==
                PARAMETERS / 4 * 2 + ROOT * 2 + 2 * (PARAMETERS - ROOT) / 4 * 2);
    assert_true(train_batch(1, "zero3,world=4", "bf16", "adamw_fused").at_peak[MEMORY_OPTIMIZER] == PARAMETERS * 3);
}

static void refuse_training(const char *method, int64_t batch_size, int64_t sequence_length, int rc,
                            const char *expected)
{
    begin(xstrdup("{\"model_type\": \"gpt2\", \"n_embd\": 256, \"n_layer\": 2, \"n_head\": 4" WORDS(1000) "}"), method,
          batch_size, sequence_length);
    assert_int_equal(make(&(int64_t){PROGRAM_MAX_EVENTS}), rc);
    assert_has(trouble.text, expected);
}

/* Before the program is made they are known, to the last one. */
TEST(test_events)
{
    static const char *const methods[] = {"full", "lora,targets=all,checkpointing,eager", "zero3,accumulate=2,world=4"};
    static const char *const types[] = {"gpt2", "gemma3_text", "roberta", "t5"};

    for (size_t i = 0; i < array_size(methods) * array_size(types); i++) {
        int64_t left = PROGRAM_MAX_EVENTS;
        begin(xasprintf("{\"model_type\": \"%s\", " SMALL ", \"num_hidden_layers\": 9, \"num_decoder_layers\": 5}",
                        types[i % array_size(types)]),
              methods[i / array_size(types)], 1, -1);
        fail_if(make(&left), trouble);
        assert_int_equal(PROGRAM_MAX_EVENTS - left, capture.program.event_count * (1 + RESERVE_PROGRAMS));
        left = (int64_t)capture.program.event_count - 1;
        capture_release(&capture);
        assert_int_equal(make(&left), -E2BIG);
        assert_true(left < 0 && !capture.program.events);
    }
}

TEST(test_refused_training)
{
    refuse_training("full", -1, -1, -ENOTSUP, "does not say the batch size");
    refuse_training("full", 1, 1025, -EINVAL, "1025 tokens is more than the model's 1024 positions");
    refuse_training("full", INT64_C(1) << 40, 1024, -EINVAL, "an activation would take more than");
    refuse_training("lora,rank=0", 1, -1, -EINVAL, "training method 'rank=0' is not known: full, lora, ");
    refuse_training("zero4", 1, -1, -EINVAL, "training method 'zero4' (did you mean zero1?) is not known");
}

TEST(test_read_lengths)
{
    static const struct {
        const char *text, *refused; /* or it has 3 samples of 3 tokens, 4 of 5, and a longer one */
    } cases[] = {
        {"5\n3 2\n\n9\n3\n5 3\r\n", NULL},
        {"1000000000\n\t5  3 \n3 3\n5 1", NULL},
        {"8\n12x\n", "l.txt:2: '12x' is no length: write the tokens of one sample, from 1 to 1000000000, or"},
        {"0", "l.txt:1: '0' is no length"},
        {"8 0", "l.txt:1: '8 0' is no length"},
        {"8\n\x01", "l.txt:2: byte 0x01"},
        {"\n \n", "l.txt: no length is in it: write"},
    };

    for (size_t i = 0; i < array_size(cases); i++) {
        CLEANUP(lengths_release) struct lengths lengths;
        int rc = hf_lengths_read(&lengths, "l.txt", cases[i].text, &trouble);
        assert_int_equal(rc, cases[i].refused ? -EINVAL : 0);
        if (rc) {
            assert_has(trouble.text, cases[i].refused);
            assert_null(lengths.items);
            continue;
        }
        assert_int_equal(lengths_shortest(&lengths), 3);
        assert_int_equal(lengths_within(&lengths, 2), 0);
        assert_int_equal(lengths_within(&lengths, 4), 3);
        assert_int_equal(lengths_within(&lengths, 8), 7);
        assert_int_equal(lengths_within(&lengths, lengths_longest(&lengths)), 8);
    }
}

/* Tensors take as much as those of the row before, or more; and whether lengths differ. */
TEST(test_lengths)
{
    static const struct {
        const char *lengths, *method;
        int64_t sequence;
        bool more, differ;
        const char *refused;
    } cases[] = {
        {NULL, "lora", 64, true, false, NULL},
        {"64 9", "lora", -1, false, false, NULL},
        {"64\n64", "lora,drop_longer", 128, false, false, NULL},
        {"300 9", "lora", 64, false, false, NULL},
        {"9 1000\n64", "lora", -1, false, true, NULL}, /* each pass meets the longest */
        {"9 1000\n64\n65 1000", "lora,drop_longer", 64, false, true, NULL},
        {"9 1000\n64\n65 1000", "lora", 65, true, true, NULL},
        {"9 1000\n65\n2000", "lora", 2000, true, true, NULL},
        {"9 1000\n64", "lora,mean_length=8", -1, false, false, "l.txt says what mean_length=8 assumes: leave one"},
        {"9\n12", "lora,drop_longer", 8, false, false, "drop_longer leaves out all listed samples: the shortest has 9"},
        {"9\nx", "lora", -1, false, false, "l.txt:2: 'x' is no length"},
    };
    int64_t before = 0;

    for (size_t i = 0; i < array_size(cases); i++) {
        struct replay_result result;
        begin(xstrdup("{\"model_type\": \"llama\", " SMALL "}"), cases[i].method, 3, cases[i].sequence);
        spec.lengths = xstrdup(cases[i].lengths);
        spec.lengths_name = xstrdup("l.txt");
        if (make(&(int64_t){PROGRAM_MAX_EVENTS})) {
            assert_has(trouble.text, cases[i].refused);
            continue;
        }
        assert_null(cases[i].refused);
        program_replay(&capture.program, &(struct replay_options){0}, &result);
        if (result.peak_tensor_bytes < before || (result.peak_tensor_bytes > before) != cases[i].more)
            fail_msg("%s, %s: %lld bytes, before %lld", cases[i].lengths, cases[i].method,
                     (long long)result.peak_tensor_bytes, (long long)before);
        assert_int_equal(capture.spread_permille > 0, cases[i].differ);
        before = result.peak_tensor_bytes;
        capture_release(&capture);
    }
}

AROUND(release)
{
    job_spec_release(&spec);
}

RUN_TESTS(NULL, release)
