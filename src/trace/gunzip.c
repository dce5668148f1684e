#include "trace/gunzip.h"

#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <string.h>
#include <zlib.h>

#include "base/memory.h"

#define STEP     ((size_t)256 << 10) /* how much is unpacked at a time */
#define GZIP_BIT 16                  /* added to the window's bits: gzip's header and checksum, nothing else's */

bool gunzip_is_packed(const char *bytes, size_t length)
{
    return length >= 2 && memcmp(bytes, "\x1f\x8b", 2) == 0;
}

static int damaged(const char *path, const z_stream *stream, size_t length, struct error *err)
{
    return error_set(err, EINVAL, "%s: damaged gzip data at byte %zu (%s): fetch or pack the file again", path,
                     length - stream->avail_in, stream->msg ? stream->msg : "it ends too early");
}

int gunzip(const char *path, const char *bytes, size_t length, size_t limit, char **text, size_t *text_length,
           struct error *err)
{
    z_stream stream = {.next_in = (Bytef *)(uintptr_t)bytes, .avail_in = (uInt)length};
    CLEANUP(free_ptr) char *out = NULL;
    size_t used = 0, capacity = 0;
    int rc = 0, state;

    *text = NULL;
    if (length > UINT_MAX)
        return error_set(err, EFBIG, "%s: %zu bytes of gzip data are too many", path, length);
    if (inflateInit2(&stream, MAX_WBITS + GZIP_BIT) != Z_OK)
        abort(); /* no memory */
    for (;;) {
        array_reserve(out, capacity, used + STEP + 1);
        stream.next_out = (Bytef *)out + used;
        stream.avail_out = (uInt)STEP;
        state = inflate(&stream, Z_NO_FLUSH);
        used += STEP - stream.avail_out;
        if (used > limit) {
            rc = error_set(err, EFBIG, "%s: it unpacks to more than %zu MiB: split the file", path, limit >> 20);
            break;
        }
        if (state == Z_STREAM_END && stream.avail_in == 0)
            break;
        if (state == Z_STREAM_END) /* another member follows */
            state = inflateReset(&stream);
        if (state != Z_OK || (stream.avail_in == 0 && stream.avail_out > 0)) {
            rc = damaged(path, &stream, length, err);
            break;
        }
    }
    inflateEnd(&stream);
    if (rc)
        return rc;
    out[used] = '\0';
    *text = steal_ptr(&out);
    *text_length = used;
    return 0;
}
