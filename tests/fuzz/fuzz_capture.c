/* An operator trace: refused in one line that names file and line, or a program that can be replayed. */
#include <string.h>

#include "estimate/program/capture.h"
#include "estimate/program/replay.h"
#include "estimate/program/workspace.h"
#include "fuzz.h"

static void change_and_replay(struct capture *capture, const struct replay_options *options)
{
    static const struct capture_changes changes = {OPTIMIZER_MOMENTUM, true, true, true};
    size_t events = capture->program.event_count;
    struct replay_result result;
    struct error err = {{0}};

    if (capture_change(capture, &changes, &err)) {
        require_message(&err);
        require(capture->program.event_count == events);
        return;
    }
    require(capture->optimizer == changes.optimizer && capture->program.event_count <= PROGRAM_MAX_EVENTS);
    program_replay(&capture->program, options, &result);
    require(result.peak_reserved_bytes >= 0);
}

static void read_and_replay(const char *text, size_t length, int64_t batch_size)
{
    struct capture capture;
    struct replay_options options = {.limit_bytes = INT64_C(40) << 30};
    struct replay_result result;
    struct error err = {{0}};

    if (capture_read(&capture, "fuzz.capture", text, length, batch_size, &err)) {
        require_message(&err);
        require(strncmp(err.text, "fuzz.capture:", 13) == 0);
        require(!capture.program.events && !capture.program.labels);
        return;
    }
    require(batch_size <= 0 || capture.batch_size == batch_size);
    require(capture.program.event_count <= PROGRAM_MAX_EVENTS && capture.program.tensor_count <= length);
    options.rule = workspace_rule_default();
    program_replay(&capture.program, &options, &result);
    require(result.peak_reserved_bytes >= 0);
    if (batch_size == 1) /* once: it may become a few million events */
        change_and_replay(&capture, &options);
    capture_release(&capture);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    static const int64_t batch_sizes[] = {0, 1, 1000, INT64_MAX};

    for (size_t i = 0; i < sizeof batch_sizes / sizeof *batch_sizes; i++)
        read_and_replay((const char *)bytes, length, batch_sizes[i]);
    return 0;
}
