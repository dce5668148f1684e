/* The training steps: embeddings, stacks of blocks, head and loss; the shares of several GPUs. */
#include <string.h>

#include "base/memory.h"
#include "estimate/transformer/model.h"

#define LOSS_BYTES      4
#define LOSS_PARTS      8 /* torchtune's default; LitGPT's have 128 tokens: a quarter of 512, a tenth of 1304 */
#define SHARD_BUCKET    INT64_C(500000000) /* of DeepSpeed's buffer of gradients (reduce_bucket_size), however few */
#define GATHERED_BLOCKS 2                  /* that are whole at a time: the one at work and the next */

static bool has(const struct model *model, uint32_t trait)
{
    return model->transformer->traits & trait;
}

static struct tape_value embed(struct model *model, int32_t parameter, const struct tape_value *tokens, int64_t width)
{
    struct tape_op op = {.inputs = tokens, .input_count = 1, .parameters = {parameter}, .parameter_count = 1};

    lowering_save(&op, tokens->tensor);
    for (int i = 0; i < 2; i++) /* sorted, and where they stood */
        op.scratch[op.scratch_count++] = tokens->elements * INDEX_BYTES;
    return lowering_run(&model->lowering, &op, tokens->elements * width, model->plain_bytes);
}

/* A place for every token of a sample, the same for all samples. */
static struct tape_value add_places(struct model *model, struct tape_value input)
{
    struct tape_value place = lowering_value(0, model->length, INDEX_BYTES), places;

    place.tensor = tape_alloc(&model->lowering.tape, tape_bytes(&place), MEMORY_TEMPORARY);
    places = embed(model, model->places, &place, model->transformer->width);
    tape_drop(&model->lowering.tape, place.tensor);
    return model_add(model, input, places);
}

static struct tape_value embed_words(struct model *model)
{
    const struct transformer *t = model->transformer;
    const struct tape_value *tokens = &model->lowering.input;
    struct tape_value result = embed(model, model->words, tokens, t->embedding_width);

    if (t->embedding_width != t->width)
        result = model_linear(model, result, &model->embed_in);
    if (t->types)
        result = model_add(model, result, embed(model, model->types, tokens, t->width));
    return result;
}

static struct tape_value embed_patches(struct model *model)
{
    const struct transformer *t = model->transformer;
    struct tape *tape = &model->lowering.tape;
    int64_t side = t->image / t->patch, elements = model->lowering.batch * side * side * t->width;
    struct program_conv conv = {.pass = CONV_FORWARD,
                                .rank = 2,
                                .batch = model->lowering.batch,
                                .groups = 1,
                                .in_channels = t->channels,
                                .out_channels = t->width};
    struct tape_value from = lowering_to_half(&model->lowering, &model->lowering.input), result;
    struct tape_op op = {.kind = TAPE_CONV, .inputs = &from, .input_count = 1, .parameter_count = 2};

    if (model->half)
        from = model_cast(model, from, HALF_BYTES);
    for (int i = 0; i < 2; i++) {
        op.parameters[i] = model->patches.first + i;
        conv.in[i] = (int32_t)t->image;
        conv.out[i] = (int32_t)side;
        conv.kernel[i] = conv.stride[i] = (int32_t)t->patch;
        conv.dilation[i] = 1;
    }
    lowering_cast_parameters(&model->lowering, &op);
    lowering_save(&op, from.tensor);
    conv.element_bytes = from.element_bytes;
    result = lowering_value(tape_alloc(tape, elements * from.element_bytes, MEMORY_ACTIVATION), elements,
                            from.element_bytes);
    program_conv(tape->program, &conv, tape->at);
    result.node = tape_record(tape, &op, &result);
    tape_drop(tape, from.tensor);
    op = (struct tape_op){
        .kind = TAPE_JOIN, .inputs = &result, .input_count = 1, .parameters = {model->specials}, .parameter_count = 1};
    from = lowering_run(&model->lowering, &op, model->tokens * t->width, model->plain_bytes);
    tape_drop(tape, result.tensor);
    return from;
}

static struct tape_value embed_input(struct model *model)
{
    const struct transformer *t = model->transformer;
    struct tape_value result = t->kind == TRANSFORMER_VISION ? embed_patches(model) : embed_words(model);

    if (t->positions)
        result = add_places(model, result);
    result = model_normalise(model, result, &model->embed_norm);
    return model_dropout(model, result, t->dropout);
}

static struct tape_value run_segment(void *context, size_t segment, const struct tape_value *input)
{
    struct model *model = context;
    struct tape_value result;

    model->lowering.autocast = model->lowering.training->precision == PRECISION_AMP && !model->half;
    result = model_block(model, model_keep(model, input), &model->blocks[segment]);
    tape_end_autocast(&model->lowering.tape);
    return result;
}

static struct tape_value run_stack(struct model *model, struct tape_value input, size_t first, size_t end)
{
    struct tape *tape = &model->lowering.tape;

    for (size_t i = first; i < end; i++) {
        struct tape_value result;
        if (!model->method->checkpointing) {
            input = model_block(model, input, &model->blocks[i]);
            continue;
        }
        tape->recording = false;
        result = model_block(model, model_keep(model, &input), &model->blocks[i]);
        tape->recording = true;
        result.node = tape_record_segment(tape, i, &input, &result);
        tape_drop(tape, input.tensor);
        input = result;
    }
    return input;
}

/* T5's: a number for each head and pair of tokens, from the first block of the stack; the same for all of it. */
static void make_bias(struct model *model, int decoder)
{
    struct tape_value place = lowering_value(0, model->length * model->length, INDEX_BYTES);

    if (!has(model, TRAIT_RELATIVE))
        return;
    place.tensor = tape_alloc(&model->lowering.tape, tape_bytes(&place), MEMORY_TEMPORARY);
    model->bias = embed(model, model->relative[decoder], &place, model->transformer->heads);
    tape_drop(&model->lowering.tape, place.tensor);
}

static void drop_bias(struct model *model)
{
    if (model->bias.elements)
        tape_drop(&model->lowering.tape, model->bias.tensor);
    model->bias.elements = 0;
}

static struct tape_value run_blocks(struct model *model)
{
    size_t encoder = (size_t)model->transformer->layers;
    struct tape_value result;

    make_bias(model, 0);
    result = run_stack(model, embed_input(model), 0, encoder);
    result = model_normalise(model, result, &model->final_norms[0]);
    if (encoder == model->block_count)
        return result;
    model->memory = model_dropout(model, result, model->transformer->dropout);
    if (!model->method->checkpointing) /* else it is there until the decoder has run again */
        drop_bias(model);
    make_bias(model, 1);
    result = run_stack(model, embed_input(model), encoder, model->block_count);
    return model_normalise(model, result, &model->final_norms[1]);
}

static struct tape_value run_head(struct model *model, struct tape_value input)
{
    const struct transformer *t = model->transformer;

    if (t->head == HEAD_NONE)
        return input;
    if (t->head == HEAD_CLASSES && t->kind != TRANSFORMER_DECODER) /* the first token's */
        input = model_unary(model, input, 0, model->lowering.batch * t->width);
    if (model->dense.out) {
        input = model_activate(model, model_linear(model, input, &model->dense));
        input = t->head == HEAD_LANGUAGE ? model_normalise(model, input, &model->head_norm)
                                         : model_dropout(model, input, t->dropout);
    }
    if (t->head == HEAD_LANGUAGE && t->embedding_width != t->width)
        input = model_linear(model, input, &model->embed_out);
    return model_linear(model, input, &model->head);
}

/* In full precision for a decoder: its model casts the logits. One that hands them out so shifts them by a copy, as
 * those of Transformers before 4.46. Under autocast also, but without a copy: log softmax reads the logits as they are.
 */
static struct tape_value log_softmax(struct model *model, struct tape_value logits)
{
    struct tape_op op = {.inputs = &logits, .input_count = 1};
    struct tape_value result;

    if (model->method->held_logits || model->method->half_loss)
        logits = model_unary(model, logits, 0, logits.elements);
    else if (model->transformer->kind == TRANSFORMER_DECODER)
        logits = model_cast(model, logits, FULL_BYTES);
    result = lowering_run_saving(&model->lowering, &op, logits.elements,
                                 model->lowering.autocast ? FULL_BYTES : logits.element_bytes, true, NULL, 0);
    tape_drop(&model->lowering.tape, logits.tensor);
    return result;
}

/* Of words, part by part, each in full precision: a part's logarithms alone stay. Its gradients, of the logarithms and
 * of the logits, are gone when the next part's are made. */
static struct tape_value lose_by_parts(struct model *model, struct tape_value logits)
{
    int64_t logarithms = logits.elements * FULL_BYTES, part = logarithms / LOSS_PARTS;
    struct tape_op op = {.inputs = &logits, .input_count = 1, .scratch = {part, part}, .scratch_count = 2};
    struct tape_value result =
        lowering_run_saving(&model->lowering, &op, model->tokens, FULL_BYTES, false, &logarithms, 1);

    tape_drop(&model->lowering.tape, logits.tensor);
    return result;
}

/* The result of the batch before is the loop's until this one's is there. */
static void take_new_result(struct model *model)
{
    for (size_t i = 0; i < model->held_before; i++)
        tape_drop(&model->lowering.tape, model->held[i]);
    model->held_count -= model->held_before;
    memmove(model->held, model->held + model->held_before, model->held_count * sizeof *model->held);
    model->held_before = model->held_count;
}

/* Cross entropy; without a head, a sum. The logits stay until the loss is there, or as long as the training loop has
 * them. It has them in full precision where Lightning runs in half (convert_output of its HalfPrecision) or the model
 * casts them, as Transformers' did before 4.46. By parts, a part's gradient takes the place of its logarithms. The
 * program has the gradient beside all of these, and lets the logits go for it. */
static void learn(struct model *model, struct tape_value logits)
{
    struct tape *tape = &model->lowering.tape;
    struct tape_value held = model->method->held_logits ? model_cast(model, logits, FULL_BYTES) : logits;
    struct tape_value loss = model_keep(model, &held);
    bool holds = model->method->held_logits && !model->method->chunked_loss;

    model_hold(model, &logits);
    if (model->transformer->head == HEAD_LANGUAGE && model->method->chunked_loss)
        loss = lose_by_parts(model, loss);
    else if (model->transformer->head != HEAD_NONE)
        loss = log_softmax(model, loss);
    loss = model_unary(model, loss, KEEPS_INPUT, 1);
    if (!holds)
        tape_drop(tape, held.tensor);
    if (model->method->kept_output)
        take_new_result(model);
    tape_end_autocast(tape);
    tape->at.phase = PHASE_BACKWARD;
    tape_drop(tape, loss.tensor);
    tape_backward(tape, loss.node, LOSS_BYTES);
    if (holds)
        tape_drop(tape, held.tensor);
}

static void take_input(struct model *model)
{
    const struct transformer *t = model->transformer;
    bool vision = t->kind == TRANSFORMER_VISION;
    int64_t batch = model->lowering.batch,
            elements = vision ? batch * t->channels * t->image * t->image : model->tokens;
    uint8_t bytes = vision ? FULL_BYTES : INDEX_BYTES;

    model->lowering.input =
        lowering_value(tape_alloc(&model->lowering.tape, elements * bytes, MEMORY_INPUT), elements, bytes);
    model->lowering.targets = tape_alloc(&model->lowering.tape,
                                         (t->head == HEAD_CLASSES ? batch : model->tokens) * INDEX_BYTES, MEMORY_INPUT);
}

static void train_batch(struct model *model)
{
    struct tape *tape = &model->lowering.tape;

    tape->at.phase = PHASE_FORWARD;
    model->lowering.autocast = model->lowering.training->precision == PRECISION_AMP && !model->half;
    learn(model, run_head(model, run_blocks(model)));
    drop_bias(model);
    if (model->transformer->decoder_layers)
        tape_drop(tape, model->memory.tensor);
    tape->at.label = 0;
}

/* Until the next one of them. */
static void set_length(struct model *model, int number)
{
    if (!method_varies(model->method) || model->transformer->kind == TRANSFORMER_VISION)
        return;
    model->length = model_length_of_batch(model->method, model->lowering.batch, number);
    model->tokens = model->length * model->lowering.batch;
}

static void train(struct model *model)
{
    struct tape *tape = &model->lowering.tape;
    const struct training *training = model->lowering.training;
    int steps = method_varies(model->method) ? MODEL_VARIED_STEPS : 2, number = 0;

    for (int step = 0; step < steps; step++) {
        tape->at = (struct program_event){.step = (uint8_t)(step + 1), .phase = PHASE_FORWARD};
        for (int i = 0; i < (model->method->accumulation > 1 ? 2 : 1); i++) {
            if (step || i) {
                tape_drop(tape, model->lowering.input.tensor);
                tape_drop(tape, model->lowering.targets);
            }
            set_length(model, number++);
            take_input(model);
            if (i == 0)
                tape_zero_gradients(tape);
            train_batch(model);
        }
        optimizer_step(tape, training->optimizer, training->weight_decay, step == 0);
    }
}

static void take_static(struct model *model, int64_t bytes, enum memory_category category)
{
    if (bytes > 0)
        tape_alloc(&model->lowering.tape, bytes < PROGRAM_MAX_BYTES ? bytes : PROGRAM_MAX_BYTES, category);
}

/* FSDP holds the parameters as they are made: in full precision where it computes by its own mixed precision alone. */
static bool keeps_masters(const struct model *model)
{
    uint8_t sharding = model->method->sharding;

    return sharding != SHARDING_NONE &&
           !(sharding == SHARDING_FSDP && model->lowering.training->precision == PRECISION_BF16);
}

/* Elements of trained parameters; bytes of a block's, of those outside of blocks and of the words' among them. */
struct sums {
    int64_t trained, block, root, words;
};

static struct sums sum_parameters(const struct model *model)
{
    const struct tape *tape = &model->lowering.tape;
    const struct transformer *t = model->transformer;
    struct sums sums = {.words = t->vocabulary * t->embedding_width * model->plain_bytes};

    for (int32_t i = 0; i < (int32_t)tape->parameter_count; i++) {
        const struct tape_parameter *parameter = &tape->parameters[i];
        bool inner = i >= model->first_inner && i < model->end_inner;
        *(inner ? &sums.block : &sums.root) += parameter->elements * parameter->element_bytes;
        sums.trained += parameter->frozen ? 0 : parameter->elements;
    }
    sums.block /= (int64_t)model->block_count;
    return sums;
}

/* The memory of one of several GPUs, beside the parameters' and gradients' own (docs/estimation.md has the rules). */
static void take_shares(struct model *model, const struct sums *sums)
{
    const struct method *method = model->method;
    int64_t world = method->world, bytes = model->half ? HALF_BYTES : FULL_BYTES, trained = sums->trained;
    bool deepspeed = method->sharding >= SHARDING_ZERO1 && method->sharding <= SHARDING_ZERO3;

    if (method->sharding == SHARDING_NONE && world > 1) /* DistributedDataParallel's buckets */
        take_static(model, trained * FULL_BYTES, MEMORY_GRADIENT);
    if (keeps_masters(model) && model->half) /* the parameters in full precision; FSDP's gradients, too */
        take_static(model, trained / world * FULL_BYTES, MEMORY_OPTIMIZER);
    if (deepspeed)
        take_static(model, SHARD_BUCKET * bytes, MEMORY_GRADIENT);
    if (deepspeed && method->sharding != SHARDING_ZERO3) /* flattened for the step */
        take_static(model, trained / world * bytes, MEMORY_GRADIENT);
    if (method->sharding == SHARDING_ZERO3)
        take_static(model, GATHERED_BLOCKS * (sums->words > sums->block ? sums->words : sums->block), MEMORY_PARAMETER);
    if (method->sharding == SHARDING_FSDP) /* its root stays whole from the forward pass to the backward pass */
        take_static(model, sums->root + GATHERED_BLOCKS * sums->block, MEMORY_PARAMETER);
}

static void prepare_sharding(struct model *model)
{
    uint8_t sharding = model->method->sharding;
    struct tape *tape = &model->lowering.tape;

    tape->state_shards = sharding >= SHARDING_ZERO1 ? model->method->world : 1;
    tape->gradient_shards = sharding >= SHARDING_ZERO2 ? model->method->world : 1;
    tape->parameter_shards = sharding >= SHARDING_ZERO3 ? model->method->world : 1;
    tape->state_bytes = keeps_masters(model) ? FULL_BYTES : 0;
}

static void count(const struct model *model, int64_t parameters)
{
    const struct transformer *t = model->transformer;
    struct program *program = model->lowering.tape.program;
    uint32_t blocks = (uint32_t)model->block_count;
    double inner = (double)parameters - (has(model, TRAIT_TIED) ? 0 : (double)(t->vocabulary * t->embedding_width));
    double flops = 2 * (double)model->tokens * (inner + 2 * (double)model->length * (double)t->width * blocks);
    double elements = (double)model->length * (double)(6 * t->width + 3 * t->inner) * blocks;

    program->layers = 12 * blocks + 3;
    program->linears = 6 * blocks;
    program->norms = 2 * blocks + 1;
    program->attentions = program->activations = blocks;
    program->dropouts = t->dropout ? 2 * blocks : 0;
    program->convolutions = t->kind == TRANSFORMER_VISION;
    program->flops = flops < 9e18 ? (uint64_t)flops : UINT64_MAX;
    program->activation_elements = elements < 9e18 ? (int64_t)elements : INT64_MAX;
    program->parameter_bytes = parameters * FULL_BYTES;
    program->batch_size = model->lowering.training->batch_size;
}

void transformer_lower(struct program *program, const struct transformer *transformer, const struct training *training,
                       const struct method *method)
{
    bool amp = training->precision == PRECISION_AMP, plain = training->precision == PRECISION_BF16;
    bool half = plain || (amp && method->sharding != SHARDING_NONE);
    bool narrow = half || (amp && method->tuning == TUNING_LORA);
    int64_t patches = transformer->patch ? transformer->image / transformer->patch : 0;
    struct model model = {.transformer = transformer,
                          .method = method,
                          .half = half,
                          .plain_bytes = plain || (narrow && method->tuning != TUNING_QLORA) ? HALF_BYTES : FULL_BYTES,
                          .frozen = method->tuning != TUNING_FULL};
    struct sums sums;

    program_init(program);
    tape_init(&model.lowering.tape, program);
    model.lowering.training = training;
    model.lowering.batch = training->batch_size;
    model.length = patches ? patches * patches + transformer->specials : method->sequence;
    model.tokens = model.length * training->batch_size;
    model.lowering.tape.cublas_bytes = training->cublas_workspace_bytes;
    model.lowering.tape.run_segment = run_segment;
    model.lowering.tape.segment_context = &model;
    prepare_sharding(&model);
    model_add_modules(&model);
    sums = sum_parameters(&model);
    take_shares(&model, &sums);
    count(&model, transformer_parameters(transformer));
    train(&model);
    tape_release(&model.lowering.tape);
    free(model.blocks);
    free(model.held);
}

/* Of a model that has as many blocks. */
static int64_t events_with(struct transformer transformer, int64_t layers, int64_t decoder_layers,
                           const struct training *training, const struct method *method)
{
    struct program program;
    int64_t count;

    transformer.layers = layers;
    transformer.decoder_layers = decoder_layers;
    transformer_lower(&program, &transformer, training, method);
    count = (int64_t)program.event_count;
    program_release(&program);
    return count;
}

int64_t transformer_events(const struct transformer *transformer, const struct training *training,
                           const struct method *method)
{
    int64_t decoder = transformer->decoder_layers > 0;
    int64_t one = events_with(*transformer, 1, decoder, training, method);
    int64_t each = events_with(*transformer, 2, decoder, training, method) - one;
    int64_t of_decoder = decoder ? events_with(*transformer, 1, 2, training, method) - one : 0;

    return one + (transformer->layers - 1) * each + (transformer->decoder_layers - decoder) * of_decoder;
}
