/* Answers that are packed by gzip as the client takes them, a piece at a time: a large one holds nobody up, and of a
 * client that leaves, the rest is never packed. */
#include <string.h>
#include <zlib.h>

#include "base/memory.h"
#include "http/http_internal.h"

#define PIECE_BYTES 16384 /* are packed before the loop's other guests get their turn */
#define LEVEL       1     /* JSON repeats itself: higher ones take more time than they save */
/* zlib's memory, together HTTP_PACKER_BYTES: a window of 8 KiB, in which a list of jobs has several */
#define WINDOW_BITS 13
#define MEMORY      6
#define GZIP_BIT    16 /* added to the window's bits */

struct packer {
    char *text; /* owned */
    z_stream stream;
    size_t left; /* bytes that the stream has not been given */
    bool begun, ended;
};

static ssize_t on_read(void *closure, uint64_t position, char *bytes, size_t most)
{
    struct packer *packer = closure;
    z_stream *stream = &packer->stream;

    (void)position;
    if (packer->ended)
        return MHD_CONTENT_READER_END_OF_STREAM;
    if (!packer->begun &&
        deflateInit2(stream, LEVEL, Z_DEFLATED, WINDOW_BITS + GZIP_BIT, MEMORY, Z_DEFAULT_STRATEGY) != Z_OK)
        return MHD_CONTENT_READER_END_WITH_ERROR;
    packer->begun = true;
    stream->next_out = (Bytef *)bytes;
    stream->avail_out = (uInt)most;
    while (stream->avail_out == most && !packer->ended) {
        size_t piece = packer->left < PIECE_BYTES ? packer->left : PIECE_BYTES;
        if (stream->avail_in == 0) {
            stream->avail_in = (uInt)piece;
            packer->left -= piece;
        }
        packer->ended = deflate(stream, packer->left ? Z_NO_FLUSH : Z_FINISH) == Z_STREAM_END;
    }
    return (ssize_t)(most - stream->avail_out);
}

static void packer_free(void *closure)
{
    struct packer *packer = closure;

    if (packer->begun)
        deflateEnd(&packer->stream);
    free(packer->text);
    free(packer);
}

struct MHD_Response *http_packed_response(char *text)
{
    struct packer *packer = xcalloc(1, sizeof *packer);
    struct MHD_Response *response =
        MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, PIECE_BYTES, on_read, packer, packer_free);

    *packer = (struct packer){.text = text, .stream = {.next_in = (Bytef *)text}, .left = strlen(text)};
    if (response)
        MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_ENCODING, "gzip");
    else
        packer_free(packer);
    return response;
}

/* "0.75" as 750; what is no such number as 1000. */
static int thousandths(const char *text, size_t length)
{
    int value = 0, scale = 1000;

    if (!length || !strchr("01", *text))
        return 1000;
    for (size_t i = 0; i < length && scale; i++)
        if (text[i] >= '0' && text[i] <= '9') {
            value += (text[i] - '0') * scale;
            scale /= 10;
        }
    return value;
}

/* "q=" of a list's entry, which stands in either case (RFC 9110, 12.4.2). */
static const char *weight_of(const char *word, size_t length)
{
    for (size_t i = 0; i + 1 < length; i++)
        if ((word[i] | 0x20) == 'q' && word[i + 1] == '=')
            return word + i + strlen("q=");
    return NULL;
}

int http_preference(const char *header, const char *name)
{
    int most = -1;

    while (header && *header) {
        const char *weight, *word = header + strspn(header, " \t");
        size_t end = strcspn(word, ","), length = strcspn(word, ",; \t");

        weight = weight_of(word, end);
        if (length == strlen(name) && strncasecmp(word, name, length) == 0) {
            int said = weight ? thousandths(weight, strcspn(weight, ",; \t")) : 1000;
            most = said > most ? said : most;
        }
        header = word + end + (word[end] == ',');
    }
    return most;
}
