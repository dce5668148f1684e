/* SQLite's write-ahead log, as far as the mark needs it: https://www.sqlite.org/fileformat2.html#walformat. A header of
 * 32 bytes; then frames, each a header of 24 bytes and a page. A checksum goes on from frame to frame, so one that is
 * right at the mark's frame proves all bytes before it. */
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "store/mark.h"

#define HEADER_BYTES  32
#define FRAME_BYTES   24          /* its header */
#define MAGIC         0x377f0682u /* the lowest bit: checksums are of big-endian words */
#define SMALLEST_PAGE 512
#define LARGEST_PAGE  65536

/* While a mark that is not synced waits for the disk, SQLite may begin the WAL anew some times: after 4 MiB each. */
#define MOST_BEGINNINGS 65536

static uint32_t big_endian(const unsigned char *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static uint32_t word(const unsigned char *at, bool big)
{
    return big ? big_endian(at) : (uint32_t)at[3] << 24 | (uint32_t)at[2] << 16 | (uint32_t)at[1] << 8 | at[0];
}

static void add_to_sum(uint32_t sum[static 2], const unsigned char *bytes, size_t count, bool big)
{
    for (size_t i = 0; i < count; i += 8) {
        sum[0] += word(bytes + i, big) + sum[1];
        sum[1] += word(bytes + i + 4, big) + sum[0];
    }
}

static bool is_sum(const uint32_t sum[static 2], const unsigned char *at)
{
    return sum[0] == big_endian(at) && sum[1] == big_endian(at + 4);
}

/* How many frames in a row can be read, at most `most`; `sum` is then that of the last one. */
static uint32_t count_frames(FILE *file, const unsigned char *header, uint32_t most, uint32_t sum[static 2])
{
    uint32_t page = big_endian(header + 8), count = 0;
    bool big = header[3] & 1;
    CLEANUP(free_ptr) unsigned char *frame = xmalloc(FRAME_BYTES + page);

    while (count < most && fread(frame, FRAME_BYTES + page, 1, file) == 1 && memcmp(frame + 8, header + 16, 8) == 0) {
        add_to_sum(sum, frame, 8, big);
        add_to_sum(sum, frame + FRAME_BYTES, page, big);
        if (!is_sum(sum, frame + 16))
            break;
        count++;
    }
    return count;
}

static bool is_header(const unsigned char *header, uint32_t sum[static 2])
{
    uint32_t page = big_endian(header + 8);

    add_to_sum(sum, header, 24, header[3] & 1);
    return (big_endian(header) & ~1u) == MAGIC && page >= SMALLEST_PAGE && page <= LARGEST_PAGE &&
           (page & (page - 1)) == 0 && is_sum(sum, header + 24);
}

static void close_file(FILE **file)
{
    if (*file)
        fclose(*file);
}

static int lost(struct error *err, const char *wal, const struct store_mark *mark, const char *what)
{
    return error_set(err, EBADMSG,
                     "%.120s %s: the last of %" PRIu64 " acknowledged records, up to job %" PRIu64 ", are lost", wal,
                     what, mark->seq, mark->last_job);
}

int store_wal_check(const char *path, const struct store_mark *mark, struct error *err)
{
    CLEANUP(free_ptr) char *wal = xasprintf("%s-wal", path);
    CLEANUP(close_file) FILE *file = mark->frames ? fopen(wal, "re") : NULL;
    const uint32_t salt[2] = {htobe32(mark->salt[0]), htobe32(mark->salt[1])};
    unsigned char header[HEADER_BYTES];
    uint32_t sum[2] = {0, 0}, count;
    char what[120];

    if (!mark->frames)
        return 0;
    if (!file && errno != ENOENT)
        return error_set(err, errno, "%s: %s", wal, strerror(errno));
    if (!file)
        return lost(err, wal, mark, "is gone");
    if (fread(header, sizeof header, 1, file) != 1 || !is_header(header, sum))
        return lost(err, wal, mark, "is damaged or short: not even its head can be read");
    if (big_endian(header + 16) != mark->salt[0] && big_endian(header + 16) - mark->salt[0] < MOST_BEGINNINGS)
        return 0; /* SQLite began it anew, once all of the one before was in the database */
    if (memcmp(header + 16, salt, sizeof salt) != 0)
        return lost(err, wal, mark, "is an older one");
    count = count_frames(file, header, mark->frames, sum);
    if (count == mark->frames)
        return sum[0] == mark->sum[0] && sum[1] == mark->sum[1] ? 0 : lost(err, wal, mark, "is another one");
    snprintf(what, sizeof what, "is damaged or short: of %" PRIu32 " pages %" PRIu32 " can be read", mark->frames,
             count);
    return lost(err, wal, mark, what);
}

int store_wal_note(int wal, uint32_t page_size, uint32_t frames, struct store_mark *mark)
{
    unsigned char head[FRAME_BYTES];
    off_t at = HEADER_BYTES + (off_t)(frames - 1) * (off_t)(FRAME_BYTES + page_size);

    if (pread(wal, head, sizeof head, at) != sizeof head)
        return -EIO;
    mark->frames = frames;
    for (int i = 0; i < 2; i++) {
        mark->salt[i] = big_endian(head + 8 + 4 * i);
        mark->sum[i] = big_endian(head + 16 + 4 * i);
    }
    return 0;
}
