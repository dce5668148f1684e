#include "api/capture_answer.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/json/json_read.h"
#include "base/memory.h"

void capture_answer_release(struct capture_answer *answer)
{
    free_ptr(&answer->text);
    free_ptr(&answer->from);
    json_decref(answer->header);
    answer->header = NULL;
}

/* By words of the reason; the first that fits. */
static const struct {
    const char *reason, *remedy;
} remedies[] = {
    {"needs the network", "name copies of them on this machine, or give --hf-config, --summary or --gpu-memory"},
    {"not in the cache of this machine",
     "name a copy of it on this machine, or give --hf-config, --summary or --gpu-memory"},
    {"FileNotFoundError", "name its data by a path, or record a batch of it with carma.capture --example-batch"},
    {"took longer than", "record a step with carma.capture --example-batch, or give --gpu-memory"},
    {"imported torch", "give --summary or --gpu-memory"},
    {"sets PYTHONPATH", "write PYTHONPATH=DIR:$PYTHONPATH, or give --hf-config, --summary or --gpu-memory"},
    {"is not recorded", "give --summary or --gpu-memory"},
    {"", "give --hf-config, --summary or --gpu-memory"},
};

void capture_add_remedy(struct error *err)
{
    size_t i = 0, length = strlen(err->text);

    while (!strstr(err->text, remedies[i].reason))
        i++;
    while (length && err->text[length - 1] == '.')
        length--;
    snprintf(err->text + length, sizeof err->text - length, "; %s", remedies[i].remedy);
}

static void keep_header(struct capture_answer *answer, json_t *header)
{
    json_decref(answer->header);
    answer->header = json_incref(header);
}

static void take(struct capture_answer *answer, json_t *header, const char *text, size_t length)
{
    const char *script = json_string_value(json_object_get(header, "script"));
    double seconds = json_number_value(json_object_get(header, "seconds"));
    const char *slash = script ? strrchr(script, '/') : NULL;
    struct error name; /* for people */

    error_set(&name, EINVAL, "%s", slash ? slash + 1 : script ? script : "its command");
    error_make_printable(&name);
    answer->from = xasprintf("an automatic capture of %s, %.0f s", name.text, fmin(fmax(ceil(seconds), 1), 1e6));
    answer->text = xstrndup(text, length);
    keep_header(answer, header);
}

/* A process that came nearer to a training step says more about why there is no capture. */
static void take_reason(struct capture_answer *answer, json_t *header, json_int_t *closest, struct error *err)
{
    const char *reason = json_string_value(json_object_get(header, "reason"));
    json_int_t closeness = json_integer_value(json_object_get(header, "closeness"));

    if (!reason || closeness < *closest)
        return;
    *closest = closeness;
    error_set(err, ENODATA, "%s", reason);
    error_make_printable(err);
    keep_header(answer, header);
}

/* A process that ended as it wanted does not know what the command lacked: the command's last words come first then,
 * and once. */
static void put_failure_first(const char *failure, const json_t *header, struct error *err)
{
    const struct error reason = *err;
    const char *words = strstr(failure, ": ");
    bool repeated = words && strstr(reason.text, words + 2);

    if (!json_is_true(json_object_get(header, "failed")))
        error_set(err, ENODATA, "%.*s; %s", (int)(repeated ? (size_t)(words - failure) : strlen(failure)), failure,
                  reason.text);
}

int capture_answer_read(const char *output, size_t length, const char *failure, struct capture_answer *answer,
                        struct error *err)
{
    const char *end = output + length;
    json_int_t closest = 0;

    *answer = (struct capture_answer){0};
    error_set(err, ENODATA, "%s", failure ? failure : "no Python process of the command imported torch");
    while (output < end) {
        const char *line_end = memchr(output, '\n', (size_t)(end - output));
        json_t *header = NULL;
        json_int_t bytes;
        bool recorded;

        if (line_end)
            json_read(output, (size_t)(line_end - output), 0, &(struct json_bounds)CAPTURE_HEADER_BOUNDS, &header,
                      NULL);
        bytes = json_integer_value(json_object_get(header, "bytes"));
        recorded = json_is_true(json_object_get(header, "capture"));
        if (!json_is_object(header) || bytes < 0 || bytes > end - line_end - 1) {
            json_decref(header);
            return error_set(err, EPROTO, "what it recorded cannot be read: it was written by something else, or cut");
        }
        if (recorded)
            take(answer, header, line_end + 1, (size_t)bytes);
        else
            take_reason(answer, header, &closest, err);
        json_decref(header);
        if (recorded)
            return 0;
        output = line_end + 1 + bytes;
    }
    if (failure && answer->header)
        put_failure_first(failure, answer->header, err);
    return -ENODATA;
}
