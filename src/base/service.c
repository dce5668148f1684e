#include "base/service.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/units.h"

#define PID_MOST INT32_MAX

/* Variables of the protocols that a child of ours must not meet. */
static const char *const variables[] = {"NOTIFY_SOCKET", "WATCHDOG_USEC",  "WATCHDOG_PID",  "LISTEN_FDS",
                                        "LISTEN_PID",    "LISTEN_FDNAMES", "LISTEN_PIDFDID"};

/* A manager's variables may have been meant for a parent that passed them on. */
static bool is_for_us(const char *pid)
{
    int64_t number;

    return pid && parse_integer(pid, 1, PID_MOST, &number, NULL) == 0 && number == getpid();
}

static int take_sockets(struct service *service, struct error *err)
{
    const char *text = getenv("LISTEN_FDS");
    int64_t count;

    if (!text || !is_for_us(getenv("LISTEN_PID")))
        return 0;
    if (parse_integer(text, 0, PID_MOST, &count, NULL) < 0)
        return error_set(err, EINVAL,
                         "LISTEN_FDS '%.40s' is not a number of sockets: check the program that starts carmad", text);
    if (count > SERVICE_MAX_SOCKETS)
        return error_set(err, E2BIG,
                         "LISTEN_FDS %.40s: carmad takes at most %d sockets: check the ListenStream= lines of its "
                         "socket unit",
                         text, SERVICE_MAX_SOCKETS);
    for (int fd = SERVICE_FIRST_SOCKET; fd < SERVICE_FIRST_SOCKET + count; fd++)
        if (fcntl(fd, F_SETFD, FD_CLOEXEC) < 0)
            return error_set(err, errno, "LISTEN_FDS %.40s: descriptor %d was not handed over: %s", text, fd,
                             strerror(errno));
    service->sockets = (unsigned)count;
    return 0;
}

static void take_watchdog(struct service *service)
{
    const char *text = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");
    int64_t us;

    if (text && (!pid || is_for_us(pid)) && parse_integer(text, 1, INT64_MAX / NS_PER_US, &us, NULL) == 0)
        service->watchdog_ns = us * NS_PER_US;
}

int service_take(struct service *service, struct error *err)
{
    const char *address = getenv("NOTIFY_SOCKET");
    int status;

    *service = (struct service){.notify_address = address && *address ? xstrdup(address) : NULL};
    take_watchdog(service);
    status = take_sockets(service, err);
    for (size_t i = 0; i < array_size(variables); i++)
        unsetenv(variables[i]);
    return status;
}

void service_release(struct service *service)
{
    free_ptr(&service->notify_address);
}

int service_tell(const struct service *service, const char *lines)
{
    const char *text = service->notify_address;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t length = text ? strlen(text) : 0;
    CLEANUP(close_fd) int fd = -1;

    if (!text)
        return 0;
    if ((*text != '/' && *text != '@') || length < 2)
        return -EAFNOSUPPORT;
    if (length >= sizeof address.sun_path)
        return -ENAMETOOLONG;
    memcpy(address.sun_path, text, length);
    if (*text == '@') /* an abstract name begins with NUL, and its end is told by its length alone */
        address.sun_path[0] = '\0';
    else
        length++;
    fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || sendto(fd, lines, strlen(lines), MSG_NOSIGNAL, (const struct sockaddr *)&address,
                         (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length)) < 0)
        return -errno;
    return 0;
}
