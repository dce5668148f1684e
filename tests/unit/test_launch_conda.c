/* Jobs that run in a conda environment, of a conda that is a script here. */
#include "launch_fixture.h"

static void write_text(const char *path, const char *text, mode_t mode)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    fputs(text, file);
    fclose(file);
    assert_int_equal(chmod(path, mode), 0);
}

/* A home with a login shell that finds a conda with one environment, "good". */
static void make_conda(struct fixture *f)
{
    static char home[200], path[300];
    char text[400];

    snprintf(home, sizeof home, "HOME=%s", f->work);
    snprintf(path, sizeof path, "%s/conda-bin", f->work);
    assert_int_equal(mkdir(path, 0755), 0);
    snprintf(path, sizeof path, "%s/conda-bin/conda", f->work);
    write_text(path,
               "#!/bin/sh\n[ \"$1\" = shell.bash ] || exit 1\ncat <<'EOF'\n"
               "conda() {\n"
               "  [ \"$1\" = activate ] || return 1\n"
               "  if [ \"$2\" = good ]; then export CONDA_DEFAULT_ENV=good; return 0; fi\n"
               "  if [ \"$2\" = broken ]; then echo 'permission trouble' >&2; return 1; fi\n"
               "  echo >&2; echo \"EnvironmentNameNotFound: Could not find conda environment: $2\" >&2; return 1\n"
               "}\nEOF\n",
               0755);
    snprintf(path, sizeof path, "%s/.bash_profile", f->work);
    /* a profile that behaves like real ones: goes elsewhere, sets variables, leaves something running */
    snprintf(text, sizeof text,
             "[ -p /dev/fd/9 ] || exit 9 # by which no descriptor comes\nPATH=%s/conda-bin:$PATH\ncd /\nexport "
             "CUDA_VISIBLE_DEVICES=7\nsleep 100 &\n",
             f->work);
    write_text(path, text, 0644);
    f->env[1] = home;
    f->request.environment_count = 2;
}

LAUNCH_TEST(test_conda)
{
    make_conda(f);
    f->request.conda_environment = "good";
    run(f, "echo $CONDA_DEFAULT_ENV $CUDA_VISIBLE_DEVICES; pwd; echo \"$0\" '$(x)'; ls /proc/self/fd | wc -l; exit 4",
        LAUNCH_ENDED);
    assert_int_equal(f->status.exit_status, 4);
    assert_has(contents(f->output), "good GPU-aaaa,GPU-bbbb\n");
    assert_has(contents(f->output), f->work);
    assert_has(contents(f->output), "sh $(x)\n4\n"); /* 0, 1, 2 and ls's own */
}

/* A process that the profile left holds the descriptor that tells the execution: the job counts as running. */
LAUNCH_TEST(test_conda_runs)
{
    make_conda(f);
    f->request.conda_environment = "good";
    start_and_run(f, "sleep 100");
    stop(f, LAUNCH_ENDED);
    assert_int_equal(f->status.signal, SIGTERM);
}

LAUNCH_TEST(test_conda_failures)
{
    char path[200];

    make_conda(f);
    f->request.conda_environment = "tf";
    run(f, "echo unreachable", LAUNCH_FAILED);
    assert_string_equal(f->status.message, "conda: environment 'tf' not found: create it, or correct the name");
    assert_string_equal(contents(f->output), "");
    f->request.conda_environment = "broken";
    run(f, "true", LAUNCH_FAILED);
    assert_string_equal(f->status.message, "conda: cannot activate 'broken': permission trouble");
    f->request.conda_environment = "good";
    command(f, "true");
    f->argv[0] = mutable("no-such-program");
    start_and_end(f, LAUNCH_ENDED);
    assert_has(f->status.message, "cannot run 'no-such-program'");
    snprintf(path, sizeof path, "%s/.bash_profile", f->work);
    write_text(path, "exit 0\n", 0644);
    run(f, "true", LAUNCH_FAILED);
    assert_has(f->status.message, "conda: the login shell ended with status 0");
    write_text(path, "PATH=/usr/bin:/bin\n", 0644);
    run(f, "true", LAUNCH_FAILED);
    assert_has(f->status.message, "conda: not found by a login shell");
    write_text(path, "sleep 100\n", 0644);
    command(f, "true");
    start(f);
    await_phase(f, LAUNCH_STARTING);
    stop(f, LAUNCH_FAILED);
    assert_true(f->status.stopped);
    f->env[0] = mutable("PATH=/nonexistent");
    run(f, "true", LAUNCH_FAILED);
    assert_has(f->status.message, "conda: bash was not found in PATH");
}

RUN_LAUNCH_TESTS
