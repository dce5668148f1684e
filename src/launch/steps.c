#include "launch/steps.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include "base/digest.h"
#include "base/memory.h"

/* The rest is text, or a summary in one line. */
#define LOOK_BYTES 512

/* A number follows the first ones, and goes before the second. */
static const char *const before[] = {"epoch", "step", "iteration", "iter", "loss", "batch"};
static const char *const behind[] = {"it/s", "s/it", "steps/s", "%|", "% done"};

static bool has_number_behind(const char *text, const char *end)
{
    for (int skipped = 0; text < end && skipped < 4 && strchr(" :=[#(", *text); skipped++)
        text++;
    return text < end && isdigit((unsigned char)*text);
}

static bool is_step(struct span line)
{
    const char *end = line.text + line.length;

    for (const char *at = line.text; at < end; at++) {
        for (size_t i = 0; i < array_size(before); i++) {
            size_t length = strlen(before[i]);
            if ((size_t)(end - at) > length && strncasecmp(at, before[i], length) == 0 &&
                has_number_behind(at + length, end))
                return true;
        }
        for (size_t i = 0; i < array_size(behind) && at > line.text; i++) {
            size_t length = strlen(behind[i]);
            if ((size_t)(end - at) >= length && strncasecmp(at, behind[i], length) == 0 &&
                (isdigit((unsigned char)at[-1]) || at[-1] == ' '))
                return true;
        }
    }
    return false;
}

uint64_t steps_identify(struct span line)
{
    uint64_t digest;

    line.length = line.length < LOOK_BYTES ? line.length : LOOK_BYTES;
    if (line.length > 6 && memcmp(line.text, "wandb:", 6) == 0) /* its summary, at the program's end */
        return 0;
    if (!is_step(line))
        return 0;
    digest = digest_add(DIGEST_EMPTY, line.text, line.length);
    return digest ? digest : 1;
}
