#include "launch/shepherd/attach.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include "base/kernel/handed.h"
#include "base/memory.h"
#include "launch/terminal.h"

static int hand(int channel, char what, int first, int second)
{
    const int fds[] = {first, second};

    return handed_send(channel, &what, 1, fds, second < 0 ? 1 : 2, 0);
}

/* Error and output in one file are one: it is shown once. */
static int hand_outputs(int channel)
{
    struct stat output, error;
    bool same = fstat(1, &output) == 0 && fstat(2, &error) == 0 && output.st_ino == error.st_ino &&
                output.st_dev == error.st_dev;

    return hand(channel, ATTACH_OUTPUTS, 1, same ? -1 : 2);
}

static int open_pipe(int channel)
{
    int ends[2], code = 0;

    if (pipe2(ends, O_CLOEXEC) < 0)
        return -errno;
    code = hand(channel, ATTACH_PIPE, ends[1], -1);
    if (code == 0 && dup2(ends[0], 0) < 0)
        code = -errno;
    close(ends[0]);
    close(ends[1]);
    return code;
}

/* The slave belongs to whoever opens the master: the job's user. It becomes the terminal of the job's session, which is
 * new. A character of UTF-8 is erased as one. */
static int open_terminal(int channel, const struct terminal_size *said)
{
    const struct winsize size = {.ws_row = said->rows, .ws_col = said->columns};
    CLEANUP(close_fd) int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    CLEANUP(close_fd) int slave = -1;
    struct termios modes;
    char name[64];
    int code;

    if (master < 0 || grantpt(master) < 0 || unlockpt(master) < 0 || ptsname_r(master, name, sizeof name) != 0 ||
        (slave = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC)) < 0 || ioctl(slave, TIOCSWINSZ, &size) < 0 ||
        tcgetattr(slave, &modes) < 0)
        return -errno;
    modes.c_iflag |= IUTF8;
    tcsetattr(slave, TCSANOW, &modes);
    code = hand(channel, ATTACH_TERMINAL, master, slave);
    if (code < 0)
        return code;
    return ioctl(slave, TIOCSCTTY, 0) < 0 || dup2(slave, 0) < 0 || dup2(slave, 1) < 0 || dup2(slave, 2) < 0 ? -errno
                                                                                                            : 0;
}

int attach_open(const struct shepherd_request *request, struct error *err)
{
    struct terminal_size size;
    int ends[2], code;

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        return error_set(err, errno, "cannot make the channel to its terminal: %s", strerror(errno));
    code = hand_outputs(ends[0]);
    if (code == 0)
        code = terminal_parse(request->attach, &size) ? open_terminal(ends[0], &size) : open_pipe(ends[0]);
    close(ends[0]);
    if (code == 0)
        return ends[1];
    close(ends[1]);
    return error_set(err, code, "cannot make its terminal or pipe: %s", strerror(-code));
}
