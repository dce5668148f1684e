/* What Slurm's plugin reads of carmad: an HTTP answer, and all of its JSON walked through. */
#include <string.h>

#include "fuzz.h"
#include "slurm/plugin/http.h"
#include "slurm/plugin/json.h"

static void walk_through(struct json whole, int depth)
{
    struct json walk = {0}, name, value;
    char text[64];
    int64_t number;

    require(depth < 32);
    if (json_read_string(whole, text, sizeof text))
        require(strlen(text) < sizeof text);
    json_read_integer(whole, &number);
    while (json_next(whole, &walk, &name, &value)) {
        require(value.at >= whole.at && value.end <= whole.end && value.at < value.end);
        walk_through(value, depth + 1);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    char *copy = malloc(length); /* of its size alone: a step too far is seen */
    const char *body = NULL;
    size_t body_length = 0;
    int status;

    require(copy || length == 0);
    if (length > 0)
        memcpy(copy, bytes, length);
    if (length > 0 && http_read_answer(copy, length, &status, &body, &body_length) == 0) {
        require(body >= copy && body + body_length <= copy + length);
        walk_through(json_of(body, body_length), 0);
    }
    free(copy);
    return 0;
}
