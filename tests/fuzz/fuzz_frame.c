/* libFuzzer target: any bytes as a stream of GPU frames, fed in pieces of a size that the first byte chooses. A decoded
 * frame must encode to one that decodes to the same again. Run: BUILD/tests/fuzz/fuzz_frame CORPUS_DIR */
#include <string.h>

#include "base/memory.h"
#include "fuzz.h"
#include "gpu/frame.h"

static void check_round_trip(const struct gpu_node_reading *reading)
{
    static struct gpu_node_reading again;
    CLEANUP(gpu_frame_decoder_release) struct gpu_frame_decoder decoder = {0};
    CLEANUP(strbuf_release) struct strbuf frame = {0};
    struct error err;

    gpu_frame_encode(reading, &frame);
    const void *from = frame.text;
    size_t left = frame.length;
    require(gpu_frame_decode(&decoder, &from, &left, &again, &err) == 1);
    require(memcmp(reading, &again, sizeof again) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    static struct gpu_node_reading reading;
    struct gpu_frame_decoder decoder = {0};
    struct error err;
    int rc = 0;

    if (count == 0)
        return 0;
    size_t piece = 1 + 8 * (size_t)bytes[0];
    bytes++;
    count--;
    while (count && rc >= 0) {
        size_t left = count < piece ? count : piece;
        const void *from = bytes;
        bytes += left;
        count -= left;
        while ((rc = gpu_frame_decode(&decoder, &from, &left, &reading, &err)) == 1)
            check_round_trip(&reading);
    }
    gpu_frame_decoder_release(&decoder);
    return 0;
}
