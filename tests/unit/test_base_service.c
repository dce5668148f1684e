/* Sockets from a service manager by the environment, and notices to it. */
#include "unit.h"

#include "base/service.h"

static char path[96];

static int set_up(void **state)
{
    int rc = make_folder(state);

    snprintf(path, sizeof path, "%s/notify", folder);
    return rc;
}

static void offer(const char *name, const char *value)
{
    assert_int_equal(value ? setenv(name, value, 1) : unsetenv(name), 0);
}

/* Every variable, as systemd sets them for this process; NULL takes one away. */
static void offer_all(const char *fds, const char *watchdog_us)
{
    char pid[16];

    snprintf(pid, sizeof pid, "%d", (int)getpid());
    offer("NOTIFY_SOCKET", path);
    offer("WATCHDOG_USEC", watchdog_us);
    offer("WATCHDOG_PID", watchdog_us ? pid : NULL);
    offer("LISTEN_FDS", fds);
    offer("LISTEN_PID", fds ? pid : NULL);
    offer("LISTEN_FDNAMES", fds ? "carmad.socket" : NULL);
}

static void assert_nothing_is_left(void)
{
    static const char *const names[] = {"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID",
                                        "LISTEN_FDS",    "LISTEN_PID",    "LISTEN_FDNAMES"};

    for (size_t i = 0; i < array_size(names); i++)
        assert_null(getenv(names[i]));
}

/* Descriptors 3 and 4, for any use of them in this program. */
static void open_two(void)
{
    for (int fd = 3; fd < 5; fd++)
        assert_int_equal(dup2(0, fd), fd);
}

static struct service service;

static int take(void)
{
    service_release(&service);
    return service_take(&service, &trouble);
}

TEST(without_a_manager_there_is_nothing)
{
    assert_int_equal(take(), 0);
    assert_null(service.notify_address);
    assert_int_equal(service.sockets, 0);
    assert_int_equal(service.watchdog_ns, 0);
    assert_int_equal(service_tell(&service, "READY=1"), 0);
}

TEST(what_is_offered_is_taken_and_not_passed_on)
{
    open_two();
    offer_all("2", "30000000");
    assert_int_equal(take(), 0);
    assert_string_equal(service.notify_address, path);
    assert_int_equal(service.sockets, 2);
    assert_int_equal(service.watchdog_ns, INT64_C(30000000000));
    for (int fd = 3; fd < 5; fd++) {
        assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
        close(fd);
    }
    assert_nothing_is_left();
}

/* A manager's child that started us without taking the variables away. */
static const char *const what_is_for_another_process_is_left_rows[] = {"1", "", "0", "-1", "x", "99999999999999999999",
                                                                       NULL};

EACH_ROW(TEST, what_is_for_another_process_is_left, what_is_for_another_process_is_left_rows)
{
    open_two();
    offer_all("2", "30000000");
    offer("LISTEN_PID", *row);
    offer("WATCHDOG_PID", *row ? *row : "1");
    assert_int_equal(take(), 0);
    assert_int_equal(service.sockets, 0);
    assert_int_equal(service.watchdog_ns, 0);
    assert_int_equal(fcntl(3, F_GETFD), 0);
    close(3);
    close(4);
    assert_nothing_is_left();
}

TEST(what_makes_no_sense_is_refused)
{
    static const struct {
        const char *fds, *says;
        int code;
    } cases[] = {
        {"x", "not a number", -EINVAL},
        {"-1", "not a number", -EINVAL},
        {"", "not a number", -EINVAL},
        {"1x", "not a number", -EINVAL},
        {"99999999999", "not a number", -EINVAL},
        {"5", "at most 4", -E2BIG},
        {"1000000", "at most 4", -E2BIG},
        {"2", "descriptor 4", -EBADF},
    };

    for (size_t i = 0; i < array_size(cases); i++) {
        open_two();
        close(4);
        offer_all(cases[i].fds, NULL);
        assert_int_equal(take(), cases[i].code);
        assert_int_equal(service.sockets, 0);
        assert_non_null(strstr(trouble.text, cases[i].says));
        assert_non_null(strstr(trouble.text, "LISTEN_FDS"));
        assert_nothing_is_left();
    }
    close(3);
}

/* A watchdog needs no pid; none that cannot be understood is obeyed. */
static const struct {
    const char *us;
    int64_t ns;
} the_watchdog_is_understood_or_left_rows[] = {{"1", 1000}, {"0", 0}, {"-5", 0}, {"5s", 0}, {"9223372036854775807", 0},
                                               {"", 0}};

EACH_ROW(TEST, the_watchdog_is_understood_or_left, the_watchdog_is_understood_or_left_rows)
{
    offer_all(NULL, row->us);
    offer("WATCHDOG_PID", NULL);
    assert_int_equal(take(), 0);
    assert_int_equal(service.watchdog_ns, row->ns);
}

static int bind_manager(const char *name, size_t length)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    memcpy(address.sun_path, name, length);
    assert_int_equal(
        bind(fd, (struct sockaddr *)&address, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length)), 0);
    return fd;
}

static void expect_told(const struct service *told_to, int manager)
{
    char text[64] = "";

    assert_int_equal(service_tell(told_to, "READY=1\nSTATUS=well"), 0);
    assert_int_equal(recv(manager, text, sizeof text - 1, 0), strlen("READY=1\nSTATUS=well"));
    assert_string_equal(text, "READY=1\nSTATUS=well");
}

TEST(the_manager_is_told)
{
    struct service told_to = {.notify_address = path};
    int manager = bind_manager(path, strlen(path) + 1), told = 0;

    expect_told(&told_to, manager);
    /* One that does not read: nobody waits for it. */
    while (told < 100000 && service_tell(&told_to, "WATCHDOG=1") == 0)
        told++;
    assert_true(told < 100000);
    assert_int_equal(service_tell(&told_to, "WATCHDOG=1"), -EAGAIN);
    close(manager);
    assert_int_equal(service_tell(&told_to, "WATCHDOG=1"), -ECONNREFUSED);
    unlink(path);
    assert_int_equal(service_tell(&told_to, "WATCHDOG=1"), -ENOENT);
}

/* An abstract name has no end but its length. */
TEST(an_abstract_manager_is_told)
{
    struct service told_to = {0};
    char name[64];

    snprintf(name, sizeof name, "@carma-service-%d", (int)getpid());
    told_to.notify_address = name;
    name[0] = '\0';
    int manager = bind_manager(name, 1 + strlen(name + 1));
    name[0] = '@';
    expect_told(&told_to, manager);
    close(manager);
    assert_int_equal(service_tell(&told_to, "WATCHDOG=1"), -ECONNREFUSED);
}

TEST(an_address_that_is_none_is_refused)
{
    char long_path[200];

    memset(long_path, 'p', sizeof long_path);
    long_path[0] = '/';
    long_path[sizeof long_path - 1] = '\0';
    const struct {
        char *address;
        int code;
    } cases[] = {{(char[]){"relative"}, -EAFNOSUPPORT},
                 {(char[]){"vsock:2:1234"}, -EAFNOSUPPORT},
                 {(char[]){"@"}, -EAFNOSUPPORT},
                 {(char[]){"/"}, -EAFNOSUPPORT},
                 {long_path, -ENAMETOOLONG}};

    for (size_t i = 0; i < array_size(cases); i++) {
        struct service told_to = {.notify_address = cases[i].address};
        assert_int_equal(service_tell(&told_to, "READY=1"), cases[i].code);
    }
}

RUN_TESTS(set_up, remove_folder)
