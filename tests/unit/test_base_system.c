/* Files, processes, signals, node time, installed files: base's questions to the system. */
#include "unit.h"

#include <sys/prctl.h>

#include "base/install.h"
#include "base/signals.h"

static char *in_folder(const char *name)
{
    return xasprintf("%s/%s", folder, name);
}

static size_t entries(void)
{
    DIR *dir = opendir(folder);
    size_t count = 0;

    assert_non_null(dir);
    while (readdir(dir))
        count++;
    closedir(dir);
    return count - 2; /* . and .. */
}

TEST(a_file_is_written_and_read)
{
    CLEANUP(free_ptr) char *path = in_folder("file"), *text = NULL;
    struct stat st;
    size_t length;
    size_t before = entries();

    assert_int_equal(file_write_atomic(path, "old content", 11, 0600, &trouble), 0);
    assert_int_equal(file_write_atomic(path, "a\0b", 3, 0640, &trouble), 0);
    assert_int_equal(entries(), before + 1); /* no temporary file stays */
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0137, 0); /* for every umask: nothing beyond 0640 */
    assert_int_equal(file_read(path, 3, &text, &length, &trouble), 0);
    assert_int_equal(length, 3);
    assert_memory_equal(text, "a\0b", 4);
}

TEST(a_file_beyond_the_limit_is_refused)
{
    CLEANUP(free_ptr) char *path = in_folder("large"), *text = NULL;
    size_t length = 77;

    assert_int_equal(file_write_atomic(path, "12345", 5, 0600, &trouble), 0);
    assert_int_equal(file_read(path, 4, &text, &length, &trouble), -EFBIG);
    assert_null(text);
    assert_non_null(strstr(trouble.text, path));
    assert_non_null(strstr(trouble.text, "5 bytes, at most 4"));
    assert_int_equal(file_read("/dev/zero", 100000, &text, &length, &trouble),
                     -EFBIG); /* of a size that is not known */
    assert_null(text);
    assert_int_equal(length, 77);
    assert_int_equal(file_read("/dev/null", 0, &text, &length, NULL), 0);
    assert_int_equal(length, 0);
    assert_string_equal(text, "");
}

TEST(a_fifo_without_a_writer_is_not_waited_for)
{
    CLEANUP(free_ptr) char *path = in_folder("fifo"), *text = NULL;
    size_t length = 77;

    assert_int_equal(mkfifo(path, 0600), 0);
    alarm(30); /* ends this program where it is */
    assert_int_equal(file_read(path, 10, &text, &length, NULL), 0);
    alarm(0);
    assert_int_equal(length, 0);
}

/* Up to the limit. It is opened without waiting, but the slow data of its writer is not lost. */
TEST(a_slow_pipe_is_read_to_its_end)
{
    static const struct timespec pause = {.tv_nsec = 50000000};

    for (size_t limit = 4; limit <= 5; limit++) {
        CLEANUP(free_ptr) char *text = NULL;
        char path[64];
        size_t length;
        int ends[2];

        assert_int_equal(pipe(ends), 0);
        pid_t writer = fork();
        assert_true(writer >= 0);
        if (writer == 0) {
            nanosleep(&pause, NULL);
            _exit(write(ends[1], "12345", 5) != 5);
        }
        close(ends[1]);
        snprintf(path, sizeof path, "/proc/self/fd/%d", ends[0]);
        assert_int_equal(file_read(path, limit, &text, &length, NULL), limit == 5 ? 0 : -EFBIG);
        assert_true(limit == 5 ? strcmp(text, "12345") == 0 : !text);
        assert_int_equal(waitpid(writer, NULL, 0), writer);
        close(ends[0]);
    }
}

TEST(what_cannot_be_read_is_named)
{
    CLEANUP(free_ptr) char *path = in_folder("absent"), *text = NULL;
    size_t length;

    assert_error(file_read(path, 10, &text, &length, &trouble), -ENOENT, path);
    assert_error(file_read(folder, 10, &text, &length, &trouble), -EISDIR, "it is a directory");
}

TEST(a_failed_write_leaves_nothing)
{
    CLEANUP(free_ptr) char *path = in_folder("directory");
    CLEANUP(free_ptr) char *absent = in_folder("absent/file");

    assert_int_equal(mkdir(path, 0700), 0);
    size_t before = entries();
    assert_error(file_write_atomic(path, "x", 1, 0600, &trouble), -EISDIR, path);
    assert_int_equal(entries(), before);
    assert_error(file_write_atomic(absent, "x", 1, 0600, &trouble), -ENOENT, absent);
}

TEST(directories_are_made_with_their_parents)
{
    CLEANUP(free_ptr) char *deep = in_folder("a/b/c"), *file = in_folder("plain"), *below = in_folder("plain/x/y");
    struct stat st;

    assert_int_equal(file_make_dirs(deep, 0700, &trouble), 0);
    assert_int_equal(file_make_dirs(deep, 0700, &trouble), 0);
    assert_int_equal(stat(deep, &st), 0);
    assert_true(S_ISDIR(st.st_mode));
    assert_int_equal(st.st_mode & 0777, 0700);
    assert_int_equal(file_write_atomic(file, "", 0, 0600, &trouble), 0);
    assert_int_equal(file_make_dirs(file, 0700, &trouble), -EEXIST);
    assert_true(file_make_dirs(below, 0700, &trouble) < 0);
    assert_non_null(strstr(trouble.text, file));
}

TEST(a_process_is_known_by_its_start)
{
    struct proc_stat self, child;
    int release[2], named[2];
    siginfo_t info;
    char byte;

    assert_int_equal(proc_read_stat(getpid(), &self), 0);
    assert_int_equal(self.parent, getppid());
    assert_int_equal(self.session, getsid(0));
    assert_true(proc_alive(getpid(), self.start_ticks));
    assert_false(proc_alive(getpid(), self.start_ticks + 1));

    assert_int_equal(pipe(release) | pipe(named), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        prctl(PR_SET_NAME, "odd) R 1 (name");
        close(release[1]);
        _exit(write(named[1], "", 1) == 1 && read(release[0], &byte, 1) == 1 ? 0 : 1);
    }
    close(release[0]);
    assert_int_equal(read(named[0], &byte, 1), 1); /* it has its odd name */
    close(named[0]);
    close(named[1]);
    assert_int_equal(proc_read_stat(pid, &child), 0);
    assert_int_equal(child.parent, getpid());
    assert_true(child.start_ticks >= self.start_ticks);
    assert_true(proc_alive(pid, child.start_ticks));
    close(release[1]); /* it ends, and stays a zombie until it is waited for */
    assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
    assert_int_equal(proc_read_stat(pid, &child), 0);
    assert_int_equal(child.state, 'Z');
    assert_false(proc_alive(pid, child.start_ticks));
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_true(proc_read_stat(pid, &child) < 0);
    assert_false(proc_alive(pid, child.start_ticks));
}

/* In a child, which ends by the first signal that it lets through. */
TEST(signals_are_reset)
{
    int status;
    pid_t child = fork();

    if (child == 0) {
        sigset_t all;
        signal(SIGUSR1, SIG_IGN);
        sigfillset(&all);
        sigprocmask(SIG_SETMASK, &all, NULL);
        signals_reset();
        raise(SIGUSR1);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGUSR1);
}

static int64_t clock_now_ns(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return now.tv_sec * NS_PER_SEC + now.tv_nsec;
}

TEST(node_time_begins_with_wall_time_and_goes_on_as_it_is_told)
{
    const int64_t year_ns = 31536000 * NS_PER_SEC, near_ns = 10 * NS_PER_SEC;

    unsetenv("CARMA_TIME_SCALE");
    unsetenv("CARMA_NODE_OFFSET");
    assert_int_equal(nodetime_init(NULL), 0);
    assert_in_range(nodetime_now_ns() - clock_now_ns(CLOCK_REALTIME) + near_ns, 0, 2 * near_ns);
    assert_int_equal(nodetime_to_wall_ns(12345), 12345);
    assert_int_equal(nodetime_shown_ns(12345), 12345);
    int64_t offset_ns = nodetime_new_offset_ns(clock_now_ns(CLOCK_REALTIME) + year_ns);
    nodetime_set_offset_ns(offset_ns); /* what is stored lies a year ahead */
    assert_in_range(nodetime_now_ns() - clock_now_ns(CLOCK_REALTIME) - year_ns + near_ns, 0, 2 * near_ns);
    assert_in_range(nodetime_shown_now_ns() - clock_now_ns(CLOCK_REALTIME) + near_ns, 0, 2 * near_ns);
    assert_int_equal(nodetime_of_shown_ns(nodetime_shown_ns(12345)), 12345);
    assert_int_equal(nodetime_shown_ns(12345), nodetime_shown_ns(12345));
    assert_int_equal(nodetime_of_shown_ns(INT64_MAX), INT64_MAX); /* and no further */
    assert_int_equal(nodetime_init(NULL), 0);                     /* as a child that carmad starts */
    assert_in_range(nodetime_now_ns() - clock_now_ns(CLOCK_BOOTTIME) - offset_ns + near_ns, 0, 2 * near_ns);
    setenv("CARMA_NODE_OFFSET", "x", 1);
    assert_int_equal(nodetime_init(NULL), -EINVAL);
    unsetenv("CARMA_NODE_OFFSET");
}

TEST(node_time_runs_at_its_scale)
{
    setenv("CARMA_TIME_SCALE", "500", 1);
    assert_int_equal(nodetime_init(NULL), 0);
    assert_int_equal((int)nodetime_scale(), 500);
    assert_int_equal(nodetime_to_wall_ns(500 * NS_PER_SEC), NS_PER_SEC);
    int64_t wall = nodetime_monotonic_wall_ns();
    int64_t node = nodetime_now_ns();
    usleep(20000);
    node = nodetime_now_ns() - node;
    wall = nodetime_monotonic_wall_ns() - wall;
    assert_true(node >= 500 * 20 * NS_PER_MS);
    assert_true(node <= 500 * wall + 500 * NS_PER_MS);
}

TEST(a_bad_scale_is_refused)
{
    static const char *const cases[] = {"0", "0.5", "-3", "10001", "nan", "inf", "5x", "fast", " "};

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct error err = {0};
        setenv("CARMA_TIME_SCALE", cases[i], 1);
        assert_int_equal(nodetime_init(&err), -EINVAL);
        assert_non_null(strstr(err.text, "CARMA_TIME_SCALE"));
        assert_int_equal((int)nodetime_scale(), 1);
    }
    setenv("CARMA_TIME_SCALE", "", 1);
    assert_int_equal(nodetime_init(NULL), 0);
    unsetenv("CARMA_TIME_SCALE");
    assert_int_equal(nodetime_init(NULL), 0);
}

TEST(installed_files_are_found_from_the_program)
{
    setenv("CARMA_PREFIX", "/opt/somewhere", 1);
    {
        CLEANUP(free_ptr) char *path = install_path("lib/carma/carma-shepherd");
        assert_string_equal(path, "/opt/somewhere/lib/carma/carma-shepherd");
    }
    unsetenv("CARMA_PREFIX");
    {
        /* This program plays PREFIX/bin/x: two levels up is PREFIX. */
        CLEANUP(free_ptr) char *path = install_path("share");
        char program[4096];
        ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
        assert_true(length > 0);
        program[length] = '\0';
        for (int i = 0; i < 2; i++)
            *strrchr(program, '/') = '\0';
        assert_int_equal(strncmp(path, program, strlen(program)), 0);
        assert_string_equal(path + strlen(program), "/share");
    }
}

RUN_TESTS(make_folder, remove_folder)
