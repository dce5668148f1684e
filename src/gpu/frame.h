/* The wire format between carma-monitor and the daemon: one frame for each look at the node's GPUs, over a pipe.
 *
 *     magic u32 "CGPU" | version u32 | size of one GPU's fixed part u32 | payload length u32
 *     at_ns i64 | GPU count u32 | 0 u32 | limits, 160 bytes of text
 *     for each GPU: struct gpu_reading up to `processes`, then as many struct gpu_process as it lists
 *
 * A reading lists min(process_count, GPU_MAX_PROCESSES) processes; only those travel. Both ends run on one machine, so
 * numbers are in its own byte order. The version and the size in the header catch two ends of different releases. The
 * reader does not trust the writer, which runs a vendor's driver in its address space. Every count, text and value is
 * checked, and memory is bounded by GPU_FRAME_MAX for all input. */
#ifndef CARMA_GPU_FRAME_H
#define CARMA_GPU_FRAME_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/strbuf.h"
#include "gpu/reading.h"

#define GPU_FRAME_VERSION     6
#define GPU_FRAME_HEADER_SIZE 16
#define GPU_FRAME_MAX         (GPU_FRAME_HEADER_SIZE + sizeof(struct gpu_node_reading))

/* Appends one frame. `count` must be at most GPU_MAX_DEVICES; members without a validity bit are sent as they stand. */
void gpu_frame_encode(const struct gpu_node_reading *reading, struct strbuf *out);

/* How many processes a reading lists: min(process_count, GPU_MAX_PROCESSES). */
uint32_t gpu_reading_listed(const struct gpu_reading *reading);

/* Zero-initialise. Holds at most one unfinished frame. */
struct gpu_frame_decoder {
    unsigned char *bytes; /* owned */
    size_t length;
    size_t capacity;
    bool broken;
};

/* Takes bytes from *bytes (advancing it and *count) up to the end of a frame. 1: *reading holds that frame, call again
 * for the rest; 0: all bytes were taken, more are needed; -EPROTO: not a stream of such frames (*reading is emptied),
 * and so it remains for every later call until the decoder is released. */
int gpu_frame_decode(struct gpu_frame_decoder *decoder, const void **bytes, size_t *count,
                     struct gpu_node_reading *reading, struct error *err);

void gpu_frame_decoder_release(struct gpu_frame_decoder *decoder); /* as zero-initialised again */

#endif
