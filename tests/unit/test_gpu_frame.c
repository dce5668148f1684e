/* The stream of frames: an encoded frame comes out again however it is cut up, and nothing else comes out. */
#include "unit.h"

#include "../property/random.h"
#include "gpu/frame.h"

/* What is encoded, and what comes out again. */
static struct gpu_node_reading encoded, decoded, *const in = &encoded, *const out = &decoded;

static void fill_reading(struct random *random, struct gpu_node_reading *reading)
{
    memset(reading, 0, sizeof *reading);
    reading->at_ns = random_range(random, 0, INT64_MAX - 1);
    reading->count = (uint32_t)random_range(random, 0, 5);
    for (uint32_t i = 0; i < reading->count; i++) {
        struct gpu_reading *gpu = &reading->gpus[i];
        snprintf(gpu->uuid, sizeof gpu->uuid, "GPU-%08x", (unsigned)random_next(random));
        snprintf(gpu->name, sizeof gpu->name, "Model %d", (int)random_range(random, 0, 9));
        gpu->index = i;
        gpu->valid = (uint32_t)random_range(random, 0, 31);
        gpu->error = (int32_t)random_range(random, 0, 30);
        gpu->utilization_permille = (int32_t)random_range(random, 0, 1000);
        for (uint32_t m = 0; m < GPU_METRIC_COUNT; m++)
            gpu->metrics[m] = (struct gpu_measure){.source = (uint32_t)random_range(random, 0, GPU_SOURCE_DCGM),
                                                   .value = random_range(random, 0, 1000),
                                                   .at_ns = random_range(random, 0, INT64_C(1) << 60)};
        gpu->total_bytes = random_range(random, 0, INT64_C(1) << 40);
        gpu->reserved_bytes = random_range(random, 0, INT64_C(1) << 30);
        gpu->used_bytes = random_range(random, 0, INT64_C(1) << 40);
        gpu->power_mw = random_range(random, 0, 700000);
        gpu->energy_mj = random_range(random, 0, INT64_C(1) << 50);
        if (gpu->valid & GPU_HAS_PROCESSES) {
            /* Sometimes more than are listed. */
            gpu->process_count = (uint32_t)random_range(random, 0, random_range(random, 0, 1) ? 3 : 200);
            for (uint32_t p = 0; p < gpu_reading_listed(gpu); p++)
                gpu->processes[p] = (struct gpu_process){.pid = (int32_t)random_range(random, 1, 4000000),
                                                         .mps = (uint32_t)random_range(random, 0, 1),
                                                         .used_bytes = random_range(random, -1, INT64_C(1) << 36)};
        }
    }
}

/* Feeds `bytes` in pieces of at most `piece`: how many readings came; their end in *rc, the last one in *reading. */
static int feed(struct gpu_frame_decoder *decoder, const char *bytes, size_t count, size_t piece,
                struct gpu_node_reading *reading, int *rc)
{
    int readings = 0;

    *rc = 0;
    while (count && *rc >= 0) {
        size_t left = count < piece ? count : piece;
        const void *from = bytes;
        bytes += left;
        count -= left;
        while ((*rc = gpu_frame_decode(decoder, &from, &left, reading, &trouble)) == 1)
            readings++;
        if (*rc == 0)
            assert_int_equal(left, 0);
    }
    return readings;
}

TEST(test_round_trip_in_any_pieces)
{
    struct random random = {20260101};

    print_message("seed %llu\n", (unsigned long long)random.state);
    for (int round = 0; round < 60; round++) {
        CLEANUP(strbuf_release) struct strbuf bytes = {0};
        CLEANUP(gpu_frame_decoder_release) struct gpu_frame_decoder decoder = {0};
        size_t pieces[] = {1, 3, 16, 4096, 1 << 20};
        int rc, frames = (int)random_range(&random, 1, 3);
        for (int i = 0; i < frames; i++) {
            fill_reading(&random, in);
            gpu_frame_encode(in, &bytes);
        }
        assert_true(bytes.length <= frames * GPU_FRAME_MAX);
        for (size_t i = 0; i < array_size(pieces); i++) {
            assert_int_equal(feed(&decoder, bytes.text, bytes.length, pieces[i], out, &rc), frames);
            assert_int_equal(rc, 0);
            assert_memory_equal(in, out, sizeof *in);
        }
    }
}

TEST(test_the_largest_reading_fits)
{
    CLEANUP(strbuf_release) struct strbuf bytes = {0};
    CLEANUP(gpu_frame_decoder_release) struct gpu_frame_decoder decoder = {0};
    int rc;

    memset(in, 0, sizeof *in);
    in->count = GPU_MAX_DEVICES;
    for (uint32_t i = 0; i < in->count; i++) {
        in->gpus[i].valid = GPU_HAS_PROCESSES;
        in->gpus[i].process_count = 100000;
        for (int p = 0; p < GPU_MAX_PROCESSES; p++)
            in->gpus[i].processes[p].pid = p + 1;
    }
    gpu_frame_encode(in, &bytes);
    assert_int_equal(feed(&decoder, bytes.text, bytes.length, 65536, out, &rc), 1);
    assert_memory_equal(in, out, sizeof *in);
}

/* A frame that is cut off anywhere gives nothing, and is not an error either: the rest may come. */
TEST(test_a_truncated_frame_gives_nothing)
{
    struct random random = {7};
    CLEANUP(strbuf_release) struct strbuf bytes = {0};
    int rc;

    do
        fill_reading(&random, in);
    while (in->count < 2);
    gpu_frame_encode(in, &bytes);
    for (size_t cut = 0; cut < bytes.length; cut++) {
        CLEANUP(gpu_frame_decoder_release) struct gpu_frame_decoder decoder = {0};
        assert_int_equal(feed(&decoder, bytes.text, cut, bytes.length, out, &rc), 0);
        assert_int_equal(rc, 0);
        assert_int_equal(feed(&decoder, bytes.text + cut, bytes.length - cut, bytes.length, out, &rc), 1);
        assert_memory_equal(in, out, sizeof *in);
    }
}

/* One GPU with one process and every bit; its fields are then spoilt one at a time. */
static void spoil(size_t offset, const void *value, size_t size, const char *why)
{
    CLEANUP(strbuf_release) struct strbuf bytes = {0};
    struct gpu_frame_decoder decoder = {0};
    struct error err = {""};
    int rc;

    memset(in, 0, sizeof *in);
    in->count = 1;
    in->gpus[0].valid = 31;
    in->gpus[0].metrics[GPU_SM_ACTIVITY].source = GPU_SOURCE_GPM;
    in->gpus[0].process_count = 1;
    in->gpus[0].processes[0].pid = 1;
    gpu_frame_encode(in, &bytes);
    assert_int_equal(feed(&decoder, bytes.text, bytes.length, bytes.length, out, &rc), 1);
    memcpy(bytes.text + offset, value, size);
    const void *from = bytes.text;
    size_t left = bytes.length;
    rc = gpu_frame_decode(&decoder, &from, &left, out, &err);
    if (rc != -EPROTO || !strstr(err.text, why))
        fail_msg("at offset %zu: %d, '%s' (not about '%s')", offset, rc, err.text, why);
    assert_null(strchr(err.text, '\n'));
    /* The stream stays broken, even for a good frame. */
    strbuf_clear(&bytes);
    gpu_frame_encode(in, &bytes);
    from = bytes.text;
    left = bytes.length;
    assert_int_equal(gpu_frame_decode(&decoder, &from, &left, out, &err), -EPROTO);
    gpu_frame_decoder_release(&decoder);
    assert_int_equal(gpu_frame_decode(&decoder, &from, &left, out, &err), 1);
    gpu_frame_decoder_release(&decoder);
}

#define PAYLOAD                         GPU_FRAME_HEADER_SIZE
#define GPU_AT                          (PAYLOAD + offsetof(struct gpu_node_reading, gpus))
#define FIELD(x)                        (GPU_AT + offsetof(struct gpu_reading, x))
#define SPOIL(offset, type, value, why) spoil(offset, &(type){value}, sizeof(type), why)

TEST(test_impossible_values_are_refused)
{
    char no_end[GPU_NAME_SIZE];

    memset(no_end, 'x', sizeof no_end);
    SPOIL(0, uint32_t, 0x12345678, "not a GPU frame");
    SPOIL(4, uint32_t, GPU_FRAME_VERSION + 1, "another release");
    SPOIL(8, uint32_t, 4, "another release");
    SPOIL(12, uint32_t, GPU_FRAME_MAX, "announces");
    SPOIL(12, uint32_t, UINT32_MAX, "announces");
    SPOIL(12, uint32_t, 0, "too short");
    SPOIL(PAYLOAD, int64_t, -1, "impossible time");
    SPOIL(PAYLOAD + 8, uint32_t, GPU_MAX_DEVICES + 1, "announces");
    SPOIL(PAYLOAD + 8, uint32_t, UINT32_MAX, "announces");
    SPOIL(PAYLOAD + 8, uint32_t, 2, "ends within GPU 1");
    SPOIL(PAYLOAD + 8, uint32_t, 0, "too many");
    spoil(FIELD(uuid), no_end, GPU_UUID_SIZE, "impossible value");
    spoil(FIELD(name), no_end, GPU_NAME_SIZE, "impossible value");
    SPOIL(FIELD(valid), uint32_t, 32, "impossible value");
    SPOIL(FIELD(valid), uint32_t, 31 & ~GPU_HAS_PROCESSES, "impossible value");
    SPOIL(FIELD(utilization_permille), int32_t, 1001, "impossible value");
    SPOIL(FIELD(utilization_permille), int32_t, -1, "impossible value");
    SPOIL(FIELD(kind), uint32_t, GPU_KIND_COUNT, "impossible value");
    SPOIL(FIELD(metrics), uint32_t, GPU_SOURCE_COUNT, "impossible value");
    SPOIL(FIELD(metrics) + offsetof(struct gpu_measure, value), int64_t, 1001, "impossible value");
    SPOIL(FIELD(metrics) + offsetof(struct gpu_measure, value), int64_t, -1, "impossible value");
    SPOIL(FIELD(metrics) + offsetof(struct gpu_measure, at_ns), int64_t, -1, "impossible value");
    SPOIL(FIELD(facts), int64_t, -1, "impossible value");
    SPOIL(FIELD(process_count), uint32_t, 2, "ends within GPU 0");
    SPOIL(FIELD(process_count), uint32_t, UINT32_MAX, "ends within GPU 0");
    SPOIL(FIELD(process_count), uint32_t, 0, "too many");
    SPOIL(FIELD(total_bytes), int64_t, -1, "impossible value");
    SPOIL(FIELD(reserved_bytes), int64_t, -1, "impossible value");
    SPOIL(FIELD(used_bytes), int64_t, -1, "impossible value");
    SPOIL(FIELD(power_mw), int64_t, -1, "impossible value");
    SPOIL(FIELD(energy_mj), int64_t, -1, "impossible value");
    SPOIL(FIELD(processes), int32_t, 0, "impossible process");
    SPOIL(FIELD(processes) + 4, uint32_t, 2, "impossible process");
    SPOIL(FIELD(processes) + 8, int64_t, -2, "impossible process");
}

/* Damaged frames and noise in random pieces: no crash (the sanitizers watch), bounded memory, results in range. */
TEST(test_random_damage)
{
    struct random random = {4242};
    int came = 0, refused = 0;

    print_message("seed %llu\n", (unsigned long long)random.state);
    for (int round = 0; round < 3000; round++) {
        CLEANUP(strbuf_release) struct strbuf bytes = {0};
        CLEANUP(gpu_frame_decoder_release) struct gpu_frame_decoder decoder = {0};
        int rc, hits = (int)random_range(&random, 1, 4);
        if (random_range(&random, 0, 9) == 0) {
            for (int i = 0; i < 300; i++)
                strbuf_append(&bytes, &(uint64_t){random_next(&random)}, 8);
        } else {
            fill_reading(&random, in);
            gpu_frame_encode(in, &bytes);
            gpu_frame_encode(in, &bytes);
            while (hits--) /* mostly near the start, where the counts are */
                bytes.text[random_range(&random, 0, random_range(&random, 0, (int64_t)bytes.length - 1))] ^=
                    (char)(1 << random_range(&random, 0, 7));
        }
        came += feed(&decoder, bytes.text, bytes.length, (size_t)random_range(&random, 1, 5000), in, &rc);
        refused += rc < 0;
        assert_true(decoder.capacity <= 2 * GPU_FRAME_MAX);
        assert_true(in->count <= GPU_MAX_DEVICES);
    }
    /* The damage must have been of both kinds, or this test says nothing. */
    assert_true(came > 100);
    assert_true(refused > 500);
}
