#include "daemon/capture/digests.h"

#include <limits.h>
#include <stdbool.h>
#include <string.h>

#include "api/capture_request.h"
#include "api/spec.h"
#include "base/memory.h"

#define WORDS_MOST 100
#define FILES_MOST 1000
#define PATH_BYTES (128 << 10) /* of all paths: they become arguments of a shell */
#define DIGEST     64
#define ABSENT     "-"

const char *digests_script(void)
{
    return "for path; do\n"
           "if [ -d \"$path\" ]; then digest=$(cd \"$path\" && printf '%s\\n' *-info | sha256sum)\n"
           "elif [ -f \"$path\" ]; then digest=$(head -c 4194304 -- \"$path\" | sha256sum)\n"
           "else digest=" ABSENT "; fi\n"
           "printf '%.64s\\n' \"$digest\"\n"
           "done >&3";
}

const char *digests_path(const json_t *digests, size_t i)
{
    return json_string_value(json_array_get(json_array_get(digests, i), 0));
}

static void add(json_t *digests, const char *path, const char *digest)
{
    json_array_append_new(digests, json_pack("[s, s]", path, digest));
}

json_t *digests_of_words(const struct job_spec *spec)
{
    json_t *digests = json_array();

    for (size_t i = spec->script ? 1 : 0; i < spec->command.count && json_array_size(digests) < WORDS_MOST; i++) {
        const char *word = spec->command.items[i];
        CLEANUP(free_ptr) char *path = word[0] == '/' ? xstrdup(word) : xasprintf("%s/%s", spec->directory, word);
        if (*word && *word != '-' && strlen(path) < PATH_MAX)
            add(digests, path, ABSENT);
    }
    return digests;
}

static bool is_digest(const char *text, size_t length)
{
    return (length == 1 && *text == *ABSENT) || (length == DIGEST && strspn(text, "0123456789abcdef") >= DIGEST);
}

/* Whether all of the list could be added. */
static bool add_pairs(json_t *digests, const json_t *pairs, size_t *bytes)
{
    size_t i;
    json_t *pair;

    json_array_foreach (pairs, i, pair) {
        const char *path = json_string_value(json_array_get(pair, 0));
        const char *digest = json_string_value(json_array_get(pair, 1));
        if (!path || *path != '/' || strlen(path) >= PATH_MAX || !digest || !is_digest(digest, strlen(digest)))
            return false;
        *bytes += strlen(path);
        if (strncmp(path, CAPTURE_COPY_OF_SCRIPT, strlen(CAPTURE_COPY_OF_SCRIPT)) != 0)
            add(digests, path, digest);
    }
    return *bytes <= PATH_BYTES && json_array_size(digests) <= FILES_MOST;
}

json_t *digests_of_answer(const json_t *header)
{
    json_t *digests = json_array();
    size_t bytes = 0;

    if (add_pairs(digests, json_object_get(header, "files"), &bytes) &&
        add_pairs(digests, json_object_get(header, "packages"), &bytes))
        return digests;
    json_decref(digests);
    return NULL;
}

json_t *digests_read(const json_t *digests, const char *output, size_t length)
{
    const char *end = output + length;
    json_t *read = json_array();

    for (size_t i = 0; i < json_array_size(digests); i++) {
        const char *line_end = memchr(output, '\n', (size_t)(end - output));
        if (!line_end || !is_digest(output, (size_t)(line_end - output))) {
            json_decref(read);
            return NULL;
        }
        json_array_append_new(read,
                              json_pack("[s, s%]", digests_path(digests, i), output, (size_t)(line_end - output)));
        output = line_end + 1;
    }
    return read;
}
