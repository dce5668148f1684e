/* config.json of published models: their counts of parameters are exact; and how they are trained. */
#include "unit.h"

#include "api/hf_config.h"
#include "api/hf_training.h"
#include "api/spec.h"
#include "estimate/program/replay.h"
#include "estimate/program/workspace.h"

#define BERT_SIZES                                                                                                     \
    "\"hidden_size\": 768, \"num_hidden_layers\": 12, \"num_attention_heads\": 12, \"intermediate_size\": 3072"
#define SMALL                                                                                                          \
    "\"hidden_size\": 256, \"num_hidden_layers\": 4, \"num_attention_heads\": 8, \"intermediate_size\": 1024, "        \
    "\"vocab_size\": 1000"

static const struct {
    const char *type, *members;
    int64_t parameters;
} published[] = {
    {"gpt2", "\"n_embd\": 768, \"n_layer\": 12, \"n_head\": 12, \"vocab_size\": 50257", 124439808},
    {"bert", BERT_SIZES ", \"architectures\": [\"BertModel\"]", 109482240},
    {"bert", BERT_SIZES ", \"architectures\": [\"BertForMaskedLM\"]", 109514298},
    {"roberta",
     BERT_SIZES
     ", \"max_position_embeddings\": 514, \"type_vocab_size\": 1, \"architectures\": [\"RobertaForMaskedLM\"]",
     124697433},
    {"distilbert",
     "\"dim\": 768, \"n_layers\": 6, \"n_heads\": 12, \"hidden_dim\": 3072, \"architectures\": "
     "[\"DistilBertForMaskedLM\"]",
     66985530},
    {"llama",
     "\"hidden_size\": 4096, \"num_hidden_layers\": 32, \"num_attention_heads\": 32, \"intermediate_size\": 11008, "
     "\"vocab_size\": 32000",
     6738415616},
    {"mistral",
     "\"hidden_size\": 4096, \"num_hidden_layers\": 32, \"num_attention_heads\": 32, \"num_key_value_heads\": 8, "
     "\"intermediate_size\": 14336, \"vocab_size\": 32000",
     7241732096},
    {"qwen2",
     "\"hidden_size\": 896, \"num_hidden_layers\": 24, \"num_attention_heads\": 14, \"num_key_value_heads\": 2, "
     "\"intermediate_size\": 4864, \"vocab_size\": 151936, \"tie_word_embeddings\": true",
     494032768},
    {"qwen3",
     "\"hidden_size\": 1024, \"num_hidden_layers\": 28, \"num_attention_heads\": 16, \"num_key_value_heads\": 8, "
     "\"head_dim\": 128, \"intermediate_size\": 3072, \"vocab_size\": 151936, \"tie_word_embeddings\": true",
     596049920},
    {"gemma",
     "\"hidden_size\": 2048, \"num_hidden_layers\": 18, \"num_attention_heads\": 8, \"num_key_value_heads\": 1, "
     "\"head_dim\": 256, \"intermediate_size\": 16384",
     2506172416},
    {"gemma2",
     "\"hidden_size\": 2304, \"num_hidden_layers\": 26, \"num_attention_heads\": 8, \"num_key_value_heads\": 4, "
     "\"head_dim\": 256, \"intermediate_size\": 9216",
     2614341888},
    {"t5",
     "\"d_model\": 512, \"num_layers\": 6, \"num_heads\": 8, \"d_kv\": 64, \"d_ff\": 2048, \"architectures\": "
     "[\"T5ForConditionalGeneration\"]",
     60506624},
    {"vit", BERT_SIZES ", \"architectures\": [\"ViTForImageClassification\"], \"num_labels\": 1000", 86567656},
    {"gpt_neox", BERT_SIZES ", \"vocab_size\": 50304, \"tie_word_embeddings\": false", 162322944},
    {"gpt_neo", "\"hidden_size\": 768, \"num_layers\": 12, \"num_heads\": 12, \"vocab_size\": 50257", 125198592},
    {"opt",
     "\"hidden_size\": 768, \"num_hidden_layers\": 12, \"num_attention_heads\": 12, \"ffn_dim\": 3072, \"vocab_size\": "
     "50272",
     125239296},
    {"opt", /* normalises behind, and its embedding is narrower */
     "\"hidden_size\": 1024, \"num_hidden_layers\": 24, \"num_attention_heads\": 16, \"ffn_dim\": 4096, "
     "\"vocab_size\": 50272, \"word_embed_proj_dim\": 512, \"do_layer_norm_before\": false",
     331196416},
    {"phi",
     "\"hidden_size\": 2560, \"num_hidden_layers\": 32, \"num_attention_heads\": 32, \"intermediate_size\": 10240, "
     "\"vocab_size\": 51200",
     2779683840},
    {"phi3",
     "\"hidden_size\": 3072, \"num_hidden_layers\": 32, \"num_attention_heads\": 32, \"intermediate_size\": 8192, "
     "\"vocab_size\": 32064",
     3821079552},
};

TEST(test_parameters)
{
    for (size_t i = 0; i < array_size(published); i++) {
        CLEANUP(free_ptr)
        char *text = xasprintf("{\"model_type\": \"%s\", %s}", published[i].type, published[i].members);
        struct transformer transformer;
        struct error err;
        fail_if(hf_config_read(&transformer, published[i].type, text, strlen(text), &err), err);
        if (transformer_parameters(&transformer) != published[i].parameters)
            fail_msg("%s: %lld parameters, not %lld", published[i].type,
                     (long long)transformer_parameters(&transformer), (long long)published[i].parameters);
    }
}

static void refuse(const char *text, const char *expected)
{
    struct transformer transformer;
    struct error err;

    assert_int_equal(hf_config_read(&transformer, "c.json", text, strlen(text), &err), -EINVAL);
    if (!strstr(err.text, expected))
        fail_msg("not '%s': %s", expected, err.text);
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

/* Most bytes at the peak, and these by category, of a small Llama trained so. */
static struct replay_result train_batch(int64_t batch_size, const char *method, const char *precision,
                                        const char *optimizer)
{
    struct job_spec spec;
    struct transformer transformer;
    struct method how;
    struct capture capture;
    struct replay_options options = {.rule = workspace_rule_default()};
    struct replay_result result;
    struct error err;

    job_spec_init(&spec);
    spec.hf_config = xstrdup("{\"model_type\": \"llama\", " SMALL "}");
    spec.batch_size = batch_size;
    spec.sequence_length = 128;
    spec.method = xstrdup(method);
    spec.precision = xstrdup(precision);
    spec.optimizer = xstrdup(optimizer);
    fail_if(hf_training_capture(&capture, &transformer, &how, &spec, &(int64_t){PROGRAM_MAX_EVENTS}, &err), err);
    program_replay(&capture.program, &options, &result);
    capture_release(&capture);
    job_spec_release(&spec);
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
    struct job_spec spec;
    struct transformer transformer;
    struct method how;
    struct capture capture;
    struct error err;

    job_spec_init(&spec);
    spec.hf_config = xstrdup("{\"model_type\": \"gpt2\", \"n_embd\": 256, \"n_layer\": 2, \"n_head\": 4, "
                             "\"vocab_size\": 1000}");
    spec.batch_size = batch_size;
    spec.sequence_length = sequence_length;
    spec.method = xstrdup(method);
    assert_int_equal(hf_training_capture(&capture, &transformer, &how, &spec, &(int64_t){PROGRAM_MAX_EVENTS}, &err),
                     rc);
    if (!strstr(err.text, expected))
        fail_msg("not '%s': %s", expected, err.text);
    job_spec_release(&spec);
}

/* Before the program is made they are known, to the last one. */
TEST(test_events)
{
    static const char *const methods[] = {"full", "lora,targets=all,checkpointing,eager", "zero3,accumulate=2,world=4"};
    static const char *const types[] = {"gpt2", "gemma3_text", "roberta", "t5"};

    for (size_t i = 0; i < array_size(methods) * array_size(types); i++) {
        CLEANUP(job_spec_release) struct job_spec spec;
        struct transformer transformer;
        struct method how;
        struct capture capture;
        int64_t left = PROGRAM_MAX_EVENTS;
        struct error err;
        job_spec_init(&spec);
        spec.hf_config =
            xasprintf("{\"model_type\": \"%s\", " SMALL ", \"num_hidden_layers\": 9, \"num_decoder_layers\": 5}",
                      types[i % array_size(types)]);
        spec.batch_size = 1;
        spec.method = xstrdup(methods[i / array_size(types)]);
        fail_if(hf_training_capture(&capture, &transformer, &how, &spec, &left, &err), err);
        assert_int_equal(PROGRAM_MAX_EVENTS - left, capture.program.event_count);
        capture_release(&capture);
        left = PROGRAM_MAX_EVENTS - left - 1;
        assert_int_equal(hf_training_capture(&capture, &transformer, &how, &spec, &left, &err), -E2BIG);
        assert_true(left < 0 && !capture.program.events);
    }
}

TEST(test_refused_training)
{
    refuse_training("full", -1, -1, -ENOTSUP, "does not say the batch size");
    refuse_training("full", 1, 1025, -EINVAL, "1025 tokens is more than the model's 1024 positions");
    refuse_training("full", INT64_C(1) << 40, 1024, -EINVAL, "an activation would take more than");
    refuse_training("lora,rank=0", 1, -1, -EINVAL, "training method 'rank=0' is not known: full, lora, ");
    refuse_training("zero4", 1, -1, -EINVAL, "training method 'zero4' is not known");
}

RUN_TESTS(NULL, NULL)
