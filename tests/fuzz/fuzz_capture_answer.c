/* What a job's processes say of their capture: refused in one line, or a text of the capture and its origin. */
#include "base/memory.h"
#include "api/capture_answer.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    CLEANUP(capture_answer_release) struct capture_answer answer;
    struct error err = {{0}}, from;

    if (capture_answer_read((const char *)bytes, length, NULL, &answer, &err)) {
        require_message(&err);
        require(!answer.text && !answer.from);
    } else {
        require(answer.text && answer.from);
        error_set(&from, 1, "%s", answer.from);
        require_message(&from);
    }
    return 0;
}
