/* A job's output and the lines of its progress file, of any bytes, in pieces of any size: counts within bounds. */
#include <string.h>

#include "fuzz.h"
#include "launch/progress.h"

static void check(const struct progress *progress)
{
    const struct progress_count *count = progress_newest(progress);

    require(!count || (count->step >= 0 && count->total >= 0 && count->done >= 0 && count->done <= PROGRESS_DONE_MOST &&
                       count->at_ns == 0 && (!count->total || count->step <= count->total)));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    const char *text = (const char *)bytes;
    struct progress whole = {0}, pieces = {0}, lines = {0};
    size_t piece = length ? 1 + bytes[0] : 1, done = 0;

    require(progress_read_output(&whole, text, length) <= length);
    check(&whole);
    for (size_t end = 0; end < length;) {
        end = length - end > piece ? end + piece : length;
        done += progress_read_output(&pieces, text + done, end - done);
        require(done <= end);
        check(&pieces);
    }
    progress_read_lines(&lines, text, length);
    check(&lines);
    progress_forget_bars(&whole);
    require(!progress_newest(&whole));
    return 0;
}
