#include "gpu/frame.h"

#include <errno.h>
#include <string.h>

#include "base/memory.h"

#define FRAME_MAGIC 0x55504743u /* "CGPU" as little-endian machines write it */
#define NODE_SIZE   offsetof(struct gpu_node_reading, gpus)
#define FIXED_SIZE  offsetof(struct gpu_reading, processes)
#define KNOWN_BITS                                                                                                     \
    (GPU_HAS_MEMORY | GPU_HAS_PROCESSES | GPU_HAS_UTILIZATION | GPU_HAS_POWER | GPU_HAS_ENERGY | GPU_UNIFIED)

/* The structs travel as they lie in memory, so they must have no padding. */
_Static_assert(NODE_SIZE == sizeof(int64_t) + 2 * sizeof(uint32_t) + 160, "struct gpu_node_reading has padding");
_Static_assert(FIXED_SIZE == 2 * GPU_UUID_SIZE + GPU_NAME_SIZE + 14 * sizeof(uint32_t) + 6 * sizeof(int64_t) +
                                 GPU_REFUSED_COUNT * sizeof(uint16_t) + GPU_METRIC_COUNT * sizeof(struct gpu_measure) +
                                 GPU_FACT_COUNT * sizeof(struct gpu_fact),
               "struct gpu_reading has padding");
_Static_assert(sizeof(struct gpu_measure) == 2 * sizeof(uint32_t) + 2 * sizeof(int64_t),
               "struct gpu_measure has padding");
_Static_assert(sizeof(struct gpu_fact) == 2 * sizeof(uint32_t) + sizeof(int64_t), "struct gpu_fact has padding");
_Static_assert(sizeof(struct gpu_process) == 2 * sizeof(uint32_t) + sizeof(int64_t), "struct gpu_process has padding");

struct header {
    uint32_t magic;
    uint32_t version;
    uint32_t fixed_size;
    uint32_t payload_length;
};

_Static_assert(sizeof(struct header) == GPU_FRAME_HEADER_SIZE, "struct header has padding");

uint32_t gpu_reading_listed(const struct gpu_reading *reading)
{
    return reading->process_count < GPU_MAX_PROCESSES ? reading->process_count : GPU_MAX_PROCESSES;
}

void gpu_frame_encode(const struct gpu_node_reading *reading, struct strbuf *out)
{
    struct header header = {FRAME_MAGIC, GPU_FRAME_VERSION, FIXED_SIZE, 0};
    size_t payload = NODE_SIZE;

    for (uint32_t i = 0; i < reading->count; i++)
        payload += FIXED_SIZE + gpu_reading_listed(&reading->gpus[i]) * sizeof(struct gpu_process);
    header.payload_length = (uint32_t)payload;
    strbuf_append(out, &header, sizeof header);
    strbuf_append(out, reading, NODE_SIZE);
    for (uint32_t i = 0; i < reading->count; i++) {
        const struct gpu_reading *gpu = &reading->gpus[i];
        strbuf_append(out, gpu, FIXED_SIZE);
        strbuf_append(out, gpu->processes, gpu_reading_listed(gpu) * sizeof(struct gpu_process));
    }
}

static bool take(const unsigned char **from, size_t *left, void *to, size_t count)
{
    if (*left < count)
        return false;
    memcpy(to, *from, count);
    *from += count;
    *left -= count;
    return true;
}

/* Whether the values that are marked as valid can be. */
static bool plausible(const struct gpu_reading *gpu)
{
    if (!memchr(gpu->uuid, '\0', sizeof gpu->uuid) || !memchr(gpu->name, '\0', sizeof gpu->name) ||
        !memchr(gpu->parent, '\0', sizeof gpu->parent))
        return false;
    if (gpu->valid & ~(uint32_t)KNOWN_BITS || gpu->kind >= GPU_KIND_COUNT || gpu->xid_at_ns < 0 || gpu->minor < -1)
        return false;
    for (uint32_t i = 0; i < GPU_METRIC_COUNT; i++)
        if (!gpu_measure_plausible(&gpu->metrics[i], i))
            return false;
    for (uint32_t i = 0; i < GPU_FACT_COUNT; i++)
        if (!gpu_fact_plausible(&gpu->facts[i], i))
            return false;
    if ((gpu->valid & GPU_HAS_MEMORY) && (gpu->total_bytes < 0 || gpu->reserved_bytes < 0 || gpu->used_bytes < 0))
        return false;
    if (!(gpu->valid & GPU_HAS_PROCESSES) && gpu->process_count > 0)
        return false;
    if ((gpu->valid & GPU_HAS_UTILIZATION) && (gpu->utilization_permille < 0 || gpu->utilization_permille > 1000))
        return false;
    if ((gpu->valid & GPU_HAS_POWER) && gpu->power_mw < 0)
        return false;
    return !(gpu->valid & GPU_HAS_ENERGY) || gpu->energy_mj >= 0;
}

static int decode_payload(const unsigned char *from, size_t left, struct gpu_node_reading *reading, struct error *err)
{
    memset(reading, 0, sizeof *reading);
    if (!take(&from, &left, reading, NODE_SIZE))
        return error_set(err, EPROTO, "GPU frame is too short to say how many GPUs it has: restart the monitor");
    if (reading->at_ns < 0)
        return error_set(err, EPROTO, "GPU frame has the impossible time %lld ns: restart the monitor",
                         (long long)reading->at_ns);
    if (!memchr(reading->limits, '\0', sizeof reading->limits))
        return error_set(err, EPROTO, "GPU frame has a text without an end: restart the monitor");
    if (reading->count > GPU_MAX_DEVICES)
        return error_set(err, EPROTO, "GPU frame announces %u GPUs, at most %d are possible: restart the monitor",
                         reading->count, GPU_MAX_DEVICES);
    for (uint32_t i = 0; i < reading->count; i++) {
        struct gpu_reading *gpu = &reading->gpus[i];
        if (!take(&from, &left, gpu, FIXED_SIZE) ||
            !take(&from, &left, gpu->processes, gpu_reading_listed(gpu) * sizeof(struct gpu_process)))
            return error_set(err, EPROTO, "GPU frame ends within GPU %u of %u: restart the monitor", i, reading->count);
        if (!plausible(gpu))
            return error_set(err, EPROTO, "GPU frame has an impossible value for GPU %u: restart the monitor", i);
        for (uint32_t p = 0; p < gpu_reading_listed(gpu); p++)
            if (gpu->processes[p].pid <= 0 || gpu->processes[p].mps > 1 || gpu->processes[p].used_bytes < -1)
                return error_set(err, EPROTO, "GPU frame has an impossible process for GPU %u: restart the monitor", i);
    }
    if (left)
        return error_set(err, EPROTO, "GPU frame has %zu bytes too many: restart the monitor", left);
    return 0;
}

static int check_header(const struct header *header, struct error *err)
{
    if (header->magic != FRAME_MAGIC)
        return error_set(err, EPROTO, "not a GPU frame (it begins with 0x%08x): restart the monitor", header->magic);
    if (header->version != GPU_FRAME_VERSION || header->fixed_size != FIXED_SIZE)
        return error_set(err, EPROTO,
                         "GPU frame of version %u, this program reads %d: carma-monitor is of another release, install "
                         "both from one build",
                         header->version, GPU_FRAME_VERSION);
    if (header->payload_length > GPU_FRAME_MAX - sizeof *header)
        return error_set(err, EPROTO, "GPU frame announces %u bytes, at most %zu are possible: restart the monitor",
                         header->payload_length, GPU_FRAME_MAX - sizeof *header);
    return 0;
}

/* Moves bytes into the decoder until it holds `wanted`; whether it does. */
static bool collect(struct gpu_frame_decoder *decoder, const unsigned char **from, size_t *left, size_t wanted)
{
    size_t missing = wanted - decoder->length;

    if (missing > *left)
        missing = *left;
    array_reserve(decoder->bytes, decoder->capacity, wanted);
    take(from, left, decoder->bytes + decoder->length, missing);
    decoder->length += missing;
    return decoder->length == wanted;
}

int gpu_frame_decode(struct gpu_frame_decoder *decoder, const void **bytes, size_t *count,
                     struct gpu_node_reading *reading, struct error *err)
{
    const unsigned char *from = *bytes;
    struct header header;
    int rc = 0;

    if (decoder->broken)
        return error_set(err, EPROTO, "the stream of GPU frames broke earlier: restart the monitor");
    if (decoder->length >= sizeof header || collect(decoder, &from, count, sizeof header)) {
        memcpy(&header, decoder->bytes, sizeof header);
        rc = check_header(&header, err);
        if (rc == 0 && collect(decoder, &from, count, sizeof header + header.payload_length)) {
            rc = decode_payload(decoder->bytes + sizeof header, header.payload_length, reading, err);
            decoder->length = 0;
            rc = rc < 0 ? rc : 1;
        }
    }
    if (rc < 0) {
        decoder->broken = true;
        memset(reading, 0, sizeof *reading);
    }
    *bytes = from;
    return rc;
}

void gpu_frame_decoder_release(struct gpu_frame_decoder *decoder)
{
    free(decoder->bytes);
    *decoder = (struct gpu_frame_decoder){0};
}
