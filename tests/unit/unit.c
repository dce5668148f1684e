/* The tests of a program, and its main where it has none of its own. */
#include "unit.h"

struct error trouble;

static struct CMUnitTest tests[64];
static size_t test_count;

void unit_test_add(struct CMUnitTest test)
{
    if (test_count == array_size(tests))
        abort();
    tests[test_count++] = test;
}

char *file_text(const char *path)
{
    char *text = NULL;
    size_t length;

    fail_if(file_read(path, 64 << 20, &text, &length, &trouble), trouble);
    return text;
}

int unit_tests_run(const char *name, CMFixtureFunction set_up, CMFixtureFunction tear_down)
{
    return _cmocka_run_group_tests(name, tests, test_count, set_up, tear_down);
}

__attribute__((weak)) int main(void)
{
    return unit_tests_run("tests", NULL, NULL);
}
