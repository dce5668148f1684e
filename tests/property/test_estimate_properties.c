/* The caching allocator against a slow and obvious one: random requests get the same blocks at the same addresses.
 * Programs of random layer lists: nothing is freed twice, and nothing stays that a training loop does not hold.
 * Usage: test_estimate_properties [TIMES], of the fewest worlds. */

#include "../unit/unit.h"

#include "estimate/estimate.h"
#include "estimate/learned/features.h"
#include "estimate/program/allocator.h"
#include "estimate/program/lower.h"
#include "estimate/program/replay.h"
#include "estimate/transformer/transformer.h"
#include "random.h"

static uint64_t times = 1;

/* All memory as a list of pieces in order of address; everything is found by looking at all of it. */
struct piece {
    int64_t address, bytes, segment; /* segment: where it begins */
    bool used;
};

struct slow {
    struct piece pieces[6000];
    size_t count;
    int64_t limit_bytes, end, reserved;
    bool out_of_memory;
};

static void insert_piece(struct slow *slow, size_t at, struct piece piece)
{
    assert_true(slow->count < array_size(slow->pieces));
    memmove(slow->pieces + at + 1, slow->pieces + at, (slow->count - at) * sizeof piece);
    slow->pieces[at] = piece;
    slow->count++;
}

static void remove_piece(struct slow *slow, size_t at)
{
    slow->count--;
    memmove(slow->pieces + at, slow->pieces + at + 1, (slow->count - at) * sizeof *slow->pieces);
}

static bool whole_segment(const struct slow *slow, size_t i)
{
    const struct piece *piece = &slow->pieces[i];

    return piece->address == piece->segment && (i + 1 == slow->count || slow->pieces[i + 1].segment != piece->segment);
}

/* Segments of 2 MiB hold small blocks and nothing else: a large one has 20 MiB, or more than 10. */
static bool holds_small(const struct slow *slow, int64_t segment)
{
    int64_t bytes = 0;

    for (size_t i = 0; i < slow->count; i++)
        bytes += slow->pieces[i].segment == segment ? slow->pieces[i].bytes : 0;
    return bytes == 2 * MIB;
}

static size_t best_piece(const struct slow *slow, int64_t bytes, bool small)
{
    size_t best = slow->count;

    for (size_t i = 0; i < slow->count; i++) {
        const struct piece *piece = &slow->pieces[i];
        if (piece->used || piece->bytes < bytes || (best < slow->count && piece->bytes >= slow->pieces[best].bytes))
            continue;
        if (holds_small(slow, piece->segment) == small)
            best = i;
    }
    return best;
}

static bool grow(struct slow *slow, int64_t bytes, bool must)
{
    int64_t segment = bytes <= MIB       ? 2 * MIB
                      : bytes < 10 * MIB ? 20 * MIB
                                         : (bytes + 2 * MIB - 1) / (2 * MIB) * (2 * MIB);

    if (slow->limit_bytes && slow->reserved + segment > slow->limit_bytes)
        for (size_t i = slow->count; i-- > 0;)
            if (!slow->pieces[i].used && whole_segment(slow, i)) {
                slow->reserved -= slow->pieces[i].bytes;
                remove_piece(slow, i);
            }
    if (slow->limit_bytes && slow->reserved + segment > slow->limit_bytes) {
        if (!must)
            return false;
        slow->out_of_memory = true;
    }
    insert_piece(slow, slow->count, (struct piece){slow->end, segment, slow->end, false});
    slow->end += segment;
    slow->reserved += segment;
    return true;
}

/* Its address; -1: no room, and it need not be. */
static int64_t slow_take(struct slow *slow, int64_t bytes, bool must)
{
    bytes = (bytes + 511) / 512 * 512;
    size_t at = best_piece(slow, bytes, bytes <= MIB);
    if (at == slow->count) {
        if (!grow(slow, bytes, must))
            return -1;
        at = slow->count - 1;
    }
    int64_t rest = slow->pieces[at].bytes - bytes;
    if (rest >= 512 && (bytes <= MIB || rest > MIB)) {
        struct piece piece = {slow->pieces[at].address + bytes, rest, slow->pieces[at].segment, false};
        slow->pieces[at].bytes = bytes;
        insert_piece(slow, at + 1, piece);
    }
    slow->pieces[at].used = true;
    return slow->pieces[at].address;
}

static void slow_give(struct slow *slow, int64_t address)
{
    for (size_t i = 0; i < slow->count; i++)
        if (slow->pieces[i].address == address)
            slow->pieces[i].used = false;
    for (size_t i = slow->count - 1; i > 0; i--) {
        struct piece *piece = &slow->pieces[i], *before = piece - 1;
        if (piece->used || before->used || piece->segment != before->segment)
            continue;
        before->bytes += piece->bytes;
        remove_piece(slow, i);
    }
}

static int64_t draw_bytes(struct random *random, int kind)
{
    static const int64_t edges[][2] = {/* MiB, bytes more */
                                       {0, 1},  {0, 511}, {0, 512},   {0, 513},  {1, -512}, {1, 0},
                                       {1, 1},  {2, 0},   {10, -512}, {10, -1},  {10, 0},   {10, 1},
                                       {20, 0}, {20, 1},  {19, 0},    {19, -512}};
    const int64_t *edge;

    switch (kind) {
    case 0: /* of one size: many equal blocks */
        return 512 * random_range(random, 1, 2);
    case 1:
        return random_range(random, 1, 2 * MIB);
    case 2:
        return random_range(random, 1, 64) * 700 * KIB;
    case 3:
        return INT64_C(1) << random_range(random, 0, 30);
    default:
        edge = edges[random_range(random, 0, array_size(edges) - 1)];
        return edge[0] * MIB + edge[1];
    }
}

/* Used blocks overlap nothing, and lie within the reserve. */
static void assert_sound(const struct allocator *allocator, const struct slow *slow)
{
    int64_t bytes = 0, allocated = 0;

    for (size_t i = 0; i < slow->count; i++) {
        bytes += slow->pieces[i].bytes;
        allocated += slow->pieces[i].used ? slow->pieces[i].bytes : 0;
        if (i)
            assert_true(slow->pieces[i - 1].address + slow->pieces[i - 1].bytes <= slow->pieces[i].address);
    }
    assert_int_equal(allocator->reserved_bytes, bytes);
    assert_int_equal(allocator->reserved_bytes, slow->reserved);
    assert_int_equal(allocator->allocated_bytes, allocated);
    assert_true(allocator->peak_reserved_bytes >= allocator->reserved_bytes);
    assert_true(allocator->peak_allocated_bytes >= allocator->allocated_bytes);
    assert_true(allocator->reserved_bytes >= allocator->allocated_bytes);
}

struct world {
    struct random random;
    struct allocator allocator;
    struct slow slow;
    uint32_t live[1500];
    size_t count;
};

static void take_one(struct world *world, int64_t bytes, bool must)
{
    uint32_t block = must ? allocator_take(&world->allocator, bytes) : allocator_try(&world->allocator, bytes);
    int64_t address = slow_take(&world->slow, bytes, must);

    assert_int_equal(block == NO_BLOCK, address < 0);
    if (block == NO_BLOCK)
        return;
    assert_int_equal(world->allocator.blocks[block].address, address);
    assert_true(world->allocator.blocks[block].bytes >= bytes);
    world->live[world->count++] = block;
}

static void give_one(struct world *world, size_t which)
{
    uint32_t block = world->live[which];

    slow_give(&world->slow, world->allocator.blocks[block].address);
    allocator_give(&world->allocator, block);
    world->live[which] = world->live[--world->count];
}

/* The numbers are left to right: how many are taken, then turns, then sizes. */
static uint32_t play(uint64_t seed, int64_t limit_bytes, size_t most, int turns, int kind)
{
    struct world *world = xcalloc(1, sizeof *world);
    int64_t peak = 0;

    world->random.state = seed;
    world->slow.limit_bytes = limit_bytes;
    allocator_init(&world->allocator, limit_bytes);
    for (int turn = 0; turn < turns; turn++) {
        bool take = !world->count || (world->count < most && random_range(&world->random, 0, 1));
        if (take)
            take_one(world, draw_bytes(&world->random, kind < 0 ? (int)random_range(&world->random, 0, 4) : kind),
                     random_range(&world->random, 0, 3));
        else
            give_one(world, (size_t)random_range(&world->random, 0, (int64_t)world->count - 1));
        assert_sound(&world->allocator, &world->slow);
        assert_true(world->allocator.peak_reserved_bytes >= peak);
        peak = world->allocator.peak_reserved_bytes;
    }
    assert_int_equal(world->allocator.out_of_memory, world->slow.out_of_memory);
    while (world->count)
        give_one(world, world->count - 1);
    assert_int_equal(world->allocator.allocated_bytes, 0);
    assert_int_equal(world->allocator.segments, world->slow.count); /* all have merged: a block is a segment */
    assert_int_equal(world->allocator.idle_count, world->slow.count);
    uint32_t leaves = world->allocator.free[true].leaf_count;
    allocator_release(&world->allocator);
    free(world);
    return leaves;
}

/* Without a limit, and with one at which segments are released. */
TEST(gives_the_blocks_of_the_slow_one)
{
    for (uint64_t seed = 1; seed <= 12 * times; seed++)
        for (int limited = 0; limited < 2; limited++)
            play(seed, limited ? 200 * MIB : 0, limited ? 60 : 40 + seed, 400, (int)(seed % 6) - 1);
}

/* A thousand free blocks of one size: more than a bin takes, and more than a leaf. */
TEST(many_equal_blocks_spill)
{
    struct world *world = xcalloc(1, sizeof *world);
    uint32_t most = 0;

    world->random.state = 7;
    allocator_init(&world->allocator, 0);
    while (world->count < 1400)
        take_one(world, 512, true);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 700 - 100 * round; i++)
            give_one(world, (size_t)random_range(&world->random, 0, (int64_t)world->count - 1));
        most = world->allocator.free[true].leaf_count > most ? world->allocator.free[true].leaf_count : most;
        while (world->count < 1300)
            take_one(world, draw_bytes(&world->random, 0), true);
        assert_sound(&world->allocator, &world->slow);
    }
    while (world->count)
        give_one(world, (size_t)random_range(&world->random, 0, (int64_t)world->count - 1));
    assert_true(most > 3);
    assert_int_equal(world->allocator.segments, world->slow.count);
    assert_int_equal(world->allocator.free[true].order_count, 0);
    allocator_release(&world->allocator);
    free(world);
}

static void draw_layer(struct random *random, struct layer_list *list)
{
    struct layer *layer = layer_list_add(list, (enum layer_kind)random_range(random, 0, LAYER_KIND_COUNT - 1));
    int32_t number = (int32_t)list->count - 1;

    layer->container = random_range(random, 0, 7) == 0;
    layer->depth = (uint8_t)random_range(random, 0, 4);
    layer->frozen = random_range(random, 0, 5) == 0;
    layer->in_place = random_range(random, 0, 2) == 0;
    layer->activation = (uint8_t)random_range(random, 0, ACTIVATION_COUNT - 1);
    layer->shape_known = random_range(random, 0, 7) > 0;
    layer->rank = (uint8_t)random_range(random, 0, LAYER_MAX_RANK);
    for (uint8_t i = 0; i < layer->rank; i++)
        layer->shape[i] = random_range(random, 1, 12);
    layer->parameters = random_range(random, 0, 2) ? random_range(random, 1, 5000) : 0;
    layer->heads = (int32_t)random_range(random, 0, 4);
    layer->kernel[0] = (int32_t)random_range(random, 0, 5);
    layer->groups = random_range(random, 0, 4);
    for (int64_t i = random_range(random, 0, 4); i > 0; i--)
        layer_add_input(layer, (int32_t)random_range(random, -2, number + 1));
}

/* Alive at the end are parameters and the like; one output and one loss. */
static void assert_balanced(const struct program *program)
{
    CLEANUP(free_ptr) uint8_t *alive = xcalloc(program->tensor_count, 1);
    uint32_t passing = 0;

    for (size_t i = 0; i < program->event_count; i++) {
        const struct program_event *event = &program->events[i];
        if (event->op == PROGRAM_ALLOC) {
            alive[event->tensor] = 1 + (event->category == MEMORY_ACTIVATION || event->category == MEMORY_TEMPORARY);
        } else if (event->op == PROGRAM_FREE) {
            assert_int_not_equal(alive[event->tensor], 0);
            alive[event->tensor] = 0;
        }
    }
    for (uint32_t i = 0; i < program->tensor_count; i++)
        passing += alive[i] == 2;
    assert_in_range(passing, 1, 2); /* a model may give back its input as it is */
}

TEST(random_models_hold_what_a_loop_holds)
{
    struct random random = {11};
    int lowered = 0;

    for (uint64_t round = 0; round < 600 * times; round++) {
        CLEANUP(layer_list_release) struct layer_list list;
        struct training training;
        struct program program;
        struct replay_result result;
        layer_list_init(&list);
        training_default(&training);
        list.input_rank = (uint8_t)random_range(&random, 0, 3);
        for (uint8_t i = 0; i < list.input_rank; i++)
            list.input[i] = random_range(&random, 1, 50);
        list.input_is_index = random_range(&random, 0, 1);
        for (int64_t i = random_range(&random, 1, 25); i > 0; i--)
            draw_layer(&random, &list);
        training.batch_size = random_range(&random, 1, 80);
        training.samples = random_range(&random, 0, 200);
        training.optimizer = (enum optimizer)random_range(&random, 0, OPTIMIZER_COUNT - 1);
        training.precision = (enum precision)random_range(&random, 0, PRECISION_AMP);
        training.summary_pass = random_range(&random, 0, 1);
        training.summary_gradients = random_range(&random, 0, 1);
        training.summary_batch = random_range(&random, 0, 2);
        if (program_lower(&program, &list, &training, NULL) == 0) {
            assert_balanced(&program);
            program_replay(&program, &(struct replay_options){0}, &result);
            assert_true(result.peak_reserved_bytes >= result.peak_allocated_bytes);
            program_release(&program);
            lowered++;
        }
    }
    assert_true((uint64_t)lowered > 500 * times);
}

/* A job that fits on a GPU fits on every larger one. */
TEST(what_fits_fits_on_larger_gpus)
{
    struct random random = {29};
    int limits = 0;

    for (int round = 0; round < 300; round++) {
        CLEANUP(layer_list_release) struct layer_list list;
        struct machine_profile profile = *machine_profile_find(MACHINE_PROFILE_DEFAULT);
        struct training training;
        struct program program;
        struct replay_result result;
        bool fits = false;
        layer_list_init(&list);
        training_default(&training);
        list.input_rank = 3;
        for (uint8_t i = 0; i < list.input_rank; i++)
            list.input[i] = random_range(&random, 1, 64);
        for (int64_t i = random_range(&random, 5, 25); i > 0; i--)
            draw_layer(&random, &list);
        training.batch_size = random_range(&random, 200, 4000);
        if (program_lower(&program, &list, &training, NULL) != 0)
            continue;
        program_replay(&program, &(struct replay_options){0}, &result);
        for (int part = 60; part <= 102; part++) {
            struct features features;
            profile.memory_bytes = features_context_bytes(&program, &profile) + result.peak_reserved_bytes * part / 100;
            features_compute(&features, &program, &profile);
            assert_false(fits && features.out_of_memory);
            limits += features.out_of_memory;
            fits = !features.out_of_memory;
        }
        assert_true(fits);
        program_release(&program);
    }
    assert_true(limits > 1000);
}

/* Of a configuration, on a GPU that the training may fill. */
static struct estimate estimate_of(const struct transformer *model, const struct training *training,
                                   const struct method *method, bool expandable_segments)
{
    struct capture capture = {.optimizer = training->optimizer, .precision = training->precision};
    struct estimate_question question = {.capture = &capture,
                                         .training = *training,
                                         .profile = machine_profile_find(MACHINE_PROFILE_DEFAULT),
                                         .quantile_permille = 980,
                                         .fold = -1};
    struct estimate estimate = {0};

    transformer_lower(&capture.program, model, training, method);
    transformer_reserve(capture.reserve, model, training, method);
    capture.program.allocator.expandable = expandable_segments;
    fail_if(estimator_replay.answer(&question, &estimate, &trouble), trouble);
    capture_release(&capture);
    return estimate;
}

/* Longer sequences, larger batches and a higher rank never need less. */
TEST(larger_trainings_need_no_less)
{
    static const char *const methods[] = {"full",
                                          "full,checkpointing,eager",
                                          "lora,checkpointing",
                                          "lora,targets=all,mean_length=300",
                                          "qlora,targets=all,mean_length=900,drop_longer",
                                          "full,zero2,world=4,accumulate=2",
                                          "full,fsdp,world=2,held_logits",
                                          "full,kept_output",
                                          "lora,drop_longer"}; /* of a list of lengths */
    static struct sample_length listed[] = {{40, 300}, {130, 520}, {200, 700}, {700, 990}, {3000, 1000}};
    static const struct lengths lengths = {listed, array_size(listed)};
    static struct transformer models[] = {{.kind = TRANSFORMER_DECODER,
                                           .head = HEAD_LANGUAGE,
                                           .traits = TRAIT_ROTARY | TRAIT_RMS | TRAIT_GATED,
                                           .vocabulary = 32000,
                                           .width = 1024,
                                           .layers = 3,
                                           .heads = 16,
                                           .kv_heads = 4,
                                           .inner = 2816},
                                          {.kind = TRANSFORMER_ENCODER,
                                           .head = HEAD_CLASSES,
                                           .traits = TRAIT_QKV_BIAS | TRAIT_POST_NORM,
                                           .dropout = true,
                                           .attention_dropout = true,
                                           .vocabulary = 30522,
                                           .positions = 1 << 20,
                                           .width = 768,
                                           .layers = 2,
                                           .heads = 12,
                                           .inner = 3072,
                                           .labels = 2},
                                          {.kind = TRANSFORMER_ENCODER_DECODER,
                                           .head = HEAD_LANGUAGE,
                                           .traits = TRAIT_RMS | TRAIT_RELATIVE | TRAIT_TIED,
                                           .vocabulary = 32128,
                                           .width = 512,
                                           .layers = 2,
                                           .decoder_layers = 2,
                                           .heads = 8,
                                           .inner = 2048,
                                           .buckets = 32}};
    struct random random = {37};

    for (size_t round = 0; round < array_size(methods) * array_size(models); round++) {
        struct transformer *model = &models[round % array_size(models)];
        struct training training;
        struct method method;
        struct estimate after;
        int64_t *const grows[] = {&method.sequence, &training.batch_size, &method.rank};
        bool expandable = random_range(&random, 0, 3) == 0;
        model->embedding_width = model->width;
        model->head_width = model->width / model->heads;
        model->kv_heads = model->kv_heads ? model->kv_heads : model->heads;
        training_default(&training);
        training.optimizer = OPTIMIZER_ADAMW;
        training.precision = (enum precision)random_range(&random, 0, PRECISION_AMP);
        method_default(&method);
        fail_if(method_parse(methods[round % array_size(methods)], &method, &trouble), trouble);
        method.world = method.world ? method.world : 1;
        method.lengths = round % array_size(methods) + 1 == array_size(methods) ? &lengths : NULL;
        method.sequence = random_range(&random, 20, 900);
        training.batch_size = random_range(&random, 1, 12);
        struct estimate before = estimate_of(model, &training, &method, expandable);
        for (int step = 0; step < 5; step++, before = after) {
            int64_t *number = grows[random_range(&random, 0, 2)];
            *number += random_range(&random, 1, 1 + *number / 3);
            after = estimate_of(model, &training, &method, expandable);
            if (after.bytes < before.bytes || after.median_bytes < before.median_bytes)
                fail_msg("round %zu, %s: %lld samples of %lld tokens, rank %lld need %lld bytes, less than %lld", round,
                         methods[round % array_size(methods)], (long long)training.batch_size,
                         (long long)method.sequence, (long long)method.rank, (long long)after.median_bytes,
                         (long long)before.median_bytes);
        }
    }
}

/* Settings of the allocator, and what growing tensors, then one of 90 MiB and its half, reserve. Expandable segments
 * hold what is free in one piece; blocks that are kept apart serve no smaller request; free segments go back ahead of
 * time where the memory is limited; the driver keeps pieces of 32 MiB. What PyTorch refuses or does not look at changes
 * nothing. */
TEST(settings_of_the_allocator)
{
    static const struct {
        const char *text;
        int64_t reserved_mib;
    } cases[] = {
        {"", 602},
        {"expandable_segments:True", 302},
        {"expandable_segments:False,max_split_size_mb:20", 602},
        {"os.environ['PYTORCH_CUDA_ALLOC_CONF'] = 'max_split_size_mb:80'", 648},
        {"garbage_collection_threshold:0.3", 602},
        {"garbage_collection_threshold:0.3,per_process_memory_fraction:1.0", 402},
        {"backend:cudaMallocAsync", 320},
    };

    for (size_t i = 0; i < array_size(cases); i++) {
        struct allocator allocator;
        char text[ALLOCATOR_SETTINGS_TEXT], other[ALLOCATOR_SETTINGS_TEXT];
        allocator_init(&allocator, 1000 * MIB);
        allocator_settings_read(&allocator.settings, cases[i].text);
        allocator_take(&allocator, MIB); /* of the small pool */
        for (int64_t bytes = 100 * MIB; bytes <= 300 * MIB; bytes += 100 * MIB)
            allocator_give(&allocator, allocator_take(&allocator, bytes));
        allocator_give(&allocator, allocator_take(&allocator, 90 * MIB));
        allocator_give(&allocator, allocator_take(&allocator, 45 * MIB));
        if (allocator.peak_reserved_bytes != cases[i].reserved_mib * MIB)
            fail_msg("%s: %lld MiB, not %lld", cases[i].text, (long long)(allocator.peak_reserved_bytes / MIB),
                     (long long)cases[i].reserved_mib);
        struct allocator_settings again = {0};
        allocator_settings_read(&again, allocator_settings_text(&allocator.settings, text));
        assert_string_equal(allocator_settings_text(&again, other), text);
        allocator_release(&allocator);
    }
    for (uint64_t seed = 1; seed <= 8 * times; seed++) {
        struct world *world = xcalloc(1, sizeof *world);
        world->random.state = seed;
        allocator_init(&world->allocator, seed % 2 ? 300 * MIB : 0);
        world->allocator.settings.expandable = true;
        for (int turn = 0; turn < 400; turn++) {
            if (!world->count || random_range(&world->random, 0, 2))
                world->live[world->count++] = allocator_take(&world->allocator, draw_bytes(&world->random, turn % 3));
            else
                allocator_give(&world->allocator, world->live[--world->count]);
            assert_true(world->allocator.reserved_bytes >= world->allocator.allocated_bytes);
            assert_true(world->allocator.out_of_memory || seed % 2 == 0 ||
                        world->allocator.reserved_bytes <= 300 * MIB);
        }
        while (world->count)
            allocator_give(&world->allocator, world->live[--world->count]);
        assert_int_equal(world->allocator.allocated_bytes, 0);
        for (int small = 0; small < 2; small++) {
            const struct block *all = &world->allocator.blocks[world->allocator.tail[small]];
            assert_true(world->allocator.tail[small] == NO_BLOCK ||
                        (all->previous == NO_BLOCK && all->next == NO_BLOCK));
        }
        allocator_release(&world->allocator);
        free(world);
    }
}

int main(int argc, char **argv)
{
    times = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    return unit_tests_run("tests", NULL, NULL);
}
