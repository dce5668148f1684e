/* A model's config.json: refused in one line, or a program that can be replayed. */
#include <string.h>

#include "api/hf/training.h"
#include "api/spec.h"
#include "base/memory.h"
#include "estimate/program/replay.h"
#include "fuzz.h"

static void train(const char *text, int64_t batch_size, const char *method, const char *precision)
{
    struct replay_options options = {.limit_bytes = INT64_C(40) << 30};
    CLEANUP(job_spec_release) struct job_spec spec;
    struct transformer transformer;
    struct method how;
    struct capture capture;
    struct replay_result result;
    struct error err = {{0}};

    job_spec_init(&spec);
    spec.hf_config = xstrdup(text);
    spec.batch_size = batch_size;
    spec.sequence_length = 8;
    spec.method = xstrdup(method);
    spec.precision = xstrdup(precision);
    if (hf_training_capture(&capture, &transformer, &how, &spec, &(int64_t){PROGRAM_MAX_EVENTS}, &err)) {
        require_message(&err);
        require(!capture.program.events && !capture.program.labels);
    } else {
        require(capture.program.event_count <= PROGRAM_MAX_EVENTS);
        if (capture.program.event_count < 100000) {
            options.rule = workspace_rule_default();
            program_replay(&capture.program, &options, &result);
            require(result.peak_reserved_bytes >= 0);
        }
        capture_release(&capture);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    CLEANUP(free_ptr) char *text = xstrndup((const char *)bytes, length);

    train(text, 1, "full", "amp");
    train(text, INT64_C(1) << 20, "qlora,rank=1000000,targets=all,eager,checkpointing,zero3,world=3", "bf16");
    return 0;
}
