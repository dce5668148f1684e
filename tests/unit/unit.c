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

void expect_file(const char *path, const char *text)
{
    const char *mode = getenv("GOLDEN");

    if (mode && strcmp(mode, "write") == 0)
        fail_if(file_write_atomic(path, text, strlen(text), 0644, &trouble), trouble);
    CLEANUP(free_ptr) char *wanted = file_text(path);
    assert_string_equal(text, wanted);
}

char folder[] = "/tmp/carma-unit-XXXXXX";

int make_folder(void **state)
{
    (void)state;
    memset(strrchr(folder, '-') + 1, 'X', 6);
    return mkdtemp(folder) ? 0 : -1;
}

int remove_folder(void **state)
{
    (void)state;
    file_remove_tree(folder);
    return 0;
}

int unit_tests_run(const char *name, CMFixtureFunction set_up, CMFixtureFunction tear_down)
{
    return _cmocka_run_group_tests(name, tests, test_count, set_up, tear_down);
}

__attribute__((weak)) int main(void)
{
    return unit_tests_run("tests", NULL, NULL);
}
