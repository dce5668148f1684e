/* Real messages, as people published them, and the causes that they may be given: one of them may be missed. */
#include "unit.h"

#include <jansson.h>

#include "launch/cause.h"

#define MAY_BE_MISSED 1
#define SKIPPED       77

static const char *path;

/* Whether the verdict on the text is expected; complains else. */
static bool is_expected(const json_t *message, const char *text, size_t length)
{
    struct cause_evidence evidence = {.free_bytes = -1};
    struct classify_verdict verdict;
    const json_t *one;
    size_t i;

    classify_output(text, length, &verdict);
    evidence.exit_status = (int32_t)json_integer_value(json_object_get(message, "exit"));
    evidence.output = verdict.kind;
    enum exit_cause cause = cause_decide(&evidence);
    json_array_foreach (json_object_get(message, "expected"), i, one)
        if (strcmp(json_string_value(one), exit_cause_name(cause)) == 0)
            return true;
    print_message("%s (%s): %s\n", json_string_value(json_object_get(message, "id")),
                  json_string_value(json_object_get(message, "source")), exit_cause_name(cause));
    return false;
}

/* The message without a text of its own, behind 80 KiB of other ranks' lines, and in the midst of a line of 70 KiB. */
static bool is_found_in_much_else(const json_t *message)
{
    static const char oom[] = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has ";
    CLEANUP(strbuf_release) struct strbuf behind = {0}, within = {0};

    strbuf_printf(&behind, "%s\n", oom);
    while (behind.length < 80 << 10)
        strbuf_puts(&behind, "node:41:97 [1] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM\n");
    while (within.length < 70 << 10) {
        if (within.length == 35 << 10)
            strbuf_puts(&within, oom);
        strbuf_puts(&within, "0123456789abcdef");
    }
    bool found = is_expected(message, behind.text, behind.length) && is_expected(message, within.text, within.length);
    return found;
}

TEST(test_messages)
{
    char *line, *rest;
    int count = 0, missed = 0;

    char *text = file_text(path);
    for (line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        json_t *message = json_loads(line, 0, NULL);
        const json_t *said = json_object_get(message, "text");
        assert_non_null(said);
        missed += json_is_string(said) ? !is_expected(message, json_string_value(said), json_string_length(said))
                                       : !is_found_in_much_else(message);
        count++;
        json_decref(message);
    }
    free(text);
    assert_true(count >= 41);
    assert_true(missed <= MAY_BE_MISSED);
}

int main(int argc, char **argv)
{
    path = argc > 1 ? argv[1] : "";
    if (access(path, R_OK) != 0) {
        printf("skipped: there is no '%s'\n", path);
        return SKIPPED;
    }
    return unit_tests_run("tests", NULL, NULL);
}
