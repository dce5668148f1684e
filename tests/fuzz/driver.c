/* Usage: TARGET ROUNDS SEED... [CORPUS.tar.gz]: feeds a fuzz target each seed file, each file of the corpus, then
 * ROUNDS random changes of the seeds. For compilers without libFuzzer: no coverage feedback, but the same inputs every
 * time. */
#include <stdio.h>
#include <string.h>
#include <zlib.h>

#include "base/file.h"
#include "base/memory.h"
#include "fuzz.h"

#define MOST_BYTES 16384
#define MOST_SEEDS 16

struct seed {
    char *text;
    size_t length;
};

static uint64_t state = 0x9e3779b97f4a7c15;

static size_t random_below(size_t limit)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return limit ? state % limit : 0;
}

/* Replaces `removed` bytes at `at` by `added` ones. */
static size_t splice(uint8_t *input, size_t length, size_t at, size_t removed, const void *bytes, size_t added)
{
    if (at + removed > length)
        removed = length - at;
    if (length - removed + added > MOST_BYTES)
        return length;
    memmove(input + at + added, input + at + removed, length - at - removed);
    memcpy(input + at, bytes, added);
    return length - removed + added;
}

static size_t change(uint8_t *input, size_t length, const struct seed *other)
{
    static const char *const pieces[] = {
        "",   "\n", "\"", "'", "\\",  ",",    ":",    "#",  "-1",  "0",    "1e300",
        " ",  "{",  "[",  "]", "}",   "null", "\xff", "\r", "nan", "\x1b", "99999999999999999999",
        "\t", "=",  "0.", ".", "gpus"};
    size_t at = random_below(length + 1), from;
    const char *piece = pieces[random_below(array_size(pieces))];
    uint8_t byte = (uint8_t)random_below(256);

    switch (random_below(4)) {
    case 0:
        return splice(input, length, at, 1, &byte, 1);
    case 1:
        return splice(input, length, at, random_below(8), piece, strlen(piece));
    case 2:
        return splice(input, length, at, random_below(64), "", 0);
    default:
        from = random_below(other->length + 1);
        return splice(input, length, at, random_below(16), other->text + from,
                      random_below(other->length - from + 1) % 64);
    }
}

/* In a block of its own: a read past the end shows under ASan. */
static void feed(const uint8_t *input, size_t length)
{
    CLEANUP(free_ptr) uint8_t *exact = xmalloc(length);

    memcpy(exact, input, length);
    LLVMFuzzerTestOneInput(exact, length);
}

/* The files of a compressed tar archive, as script/fuzz makes it; how many. -1: it is damaged. */
static long feed_archive(const char *path)
{
    gzFile archive = gzopen(path, "rb");
    char header[512];
    long files = 0;

    while (archive && gzread(archive, header, sizeof header) == sizeof header && header[0]) {
        size_t length = strtoul(header + 124, NULL, 8), padded = (length + 511) / 512 * 512;
        uint8_t *block = xmalloc(padded + 1);

        if (gzread(archive, block, (unsigned)padded) != (int)padded) {
            free(block);
            gzclose(archive);
            return -1;
        }
        if (header[156] == '0') {
            feed(block, length);
            files++;
        }
        free(block);
    }
    return archive && gzclose(archive) == Z_OK ? files : -1;
}

int main(int argc, char **argv)
{
    struct seed seeds[MOST_SEEDS];
    bool with_corpus = argc > 3 && strstr(argv[argc - 1], ".tar.gz");
    size_t count = argc > 2 ? (size_t)(argc - 2 - with_corpus) : 0;
    long rounds = argc > 1 ? atol(argv[1]) : 0;

    if (count < 1 || count > MOST_SEEDS || rounds < 1) {
        fprintf(stderr, "usage: %s ROUNDS SEED... [CORPUS.tar.gz]\n", argv[0]);
        return 2;
    }
    if (with_corpus) {
        long files = feed_archive(argv[argc - 1]);
        if (files < 1) {
            fprintf(stderr, "%s: not a whole archive with files in it\n", argv[argc - 1]);
            return 1;
        }
        printf("%ld inputs of the corpus\n", files);
    }
    for (size_t i = 0; i < count; i++) {
        struct error err;
        if (file_read(argv[i + 2], MOST_BYTES, &seeds[i].text, &seeds[i].length, &err)) {
            fprintf(stderr, "%s\n", err.text);
            return 1;
        }
        feed((const uint8_t *)seeds[i].text, seeds[i].length);
    }
    for (long round = 0; round < rounds; round++) {
        const struct seed *seed = &seeds[random_below(count)];
        uint8_t input[MOST_BYTES];
        size_t length = seed->length;

        memcpy(input, seed->text, length);
        for (size_t changes = 1 + random_below(4); changes; changes--)
            length = change(input, length, &seeds[random_below(count)]);
        feed(input, length);
    }
    for (size_t i = 0; i < count; i++)
        free(seeds[i].text);
    return 0;
}
