/* Scripts: the job runs a copy, which is made for it alone and goes with it. */
#include "launch_fixture.h"

#define BODY "echo \"$0 $# $1\"; stat -c %a \"$0\""

static void run_script(struct fixture *f, const char *typed, const char *text, const char *first,
                       enum launch_phase expected)
{
    static char directory[160];

    snprintf(directory, sizeof directory, "%s/copy", f->root);
    f->argv[0] = mutable(typed);
    f->argv[1] = mutable(first);
    f->request.argument_count = 2;
    f->request.script = text;
    f->request.script_directory = directory;
    unlink(f->output);
    start_and_end(f, expected);
}

static void expect(const struct fixture *f, const char *name, const char *argument)
{
    char text[400];

    snprintf(text, sizeof text, "%s/copy/%s 1 %s\n500\n", f->root, name, argument);
    assert_string_equal(contents(f->output), text);
}

LAUNCH_TEST(test_copy)
{
    char directory[160];

    run_script(f, "jobs/train.sh", "#!/bin/sh -eu\n" BODY "\n", "two words", LAUNCH_ENDED);
    assert_int_equal(f->status.cause, EXIT_COMPLETED);
    expect(f, "train.sh", "two words");
    snprintf(directory, sizeof directory, "%s/copy", f->root);
    assert_int_equal(access(directory, F_OK), -1); /* gone with the job */
    /* names that no file can have, and that of standard input */
    run_script(f, "jobs/..", "#! /bin/sh\n" BODY "\n", "-x", LAUNCH_ENDED);
    expect(f, "script", "-x");
    run_script(f, "-", "#!/bin/sh\r\n" BODY, "", LAUNCH_ENDED);
    expect(f, "script", "");
}

/* A killed shepherd leaves its copy, and a link there may be any user's. */
LAUNCH_TEST(test_leftover)
{
    char directory[160], path[200], other[160];

    snprintf(directory, sizeof directory, "%s/copy", f->root);
    snprintf(path, sizeof path, "%s/train.sh", directory);
    snprintf(other, sizeof other, "%s/other", f->work);
    assert_int_equal(close(open(other, O_WRONLY | O_CREAT, 0600)), 0);
    assert_int_equal(mkdir(directory, 0700), 0);
    assert_int_equal(symlink(other, path), 0);
    run_script(f, "train.sh", "#!/bin/sh\n" BODY "\n", "again", LAUNCH_ENDED);
    expect(f, "train.sh", "again");
    assert_string_equal(contents(other), "");
}

LAUNCH_TEST(test_cannot)
{
    char directory[160];

    snprintf(directory, sizeof directory, "%s/copy", f->root);
    run_script(f, "train.sh", "#!/nowhere/sh\n", "x", LAUNCH_ENDED);
    assert_has(f->status.message, "cannot run '/nowhere/sh'");
    f->request.script_directory = "/proc/nowhere/copy";
    start_and_end(f, LAUNCH_FAILED);
    assert_has(f->status.message, "cannot write the copy of its script");
}

RUN_LAUNCH_TESTS
