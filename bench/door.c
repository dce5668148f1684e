/* bench-door SOCKET SECONDS: how long a user waits for an answer while another opens connections as fast as he can. As
 * root: the one is uid 65533, the other 65534. Each request has a connection of its own, as a command's. Prints the
 * latencies of GET /v1/status, in milliseconds, at the median and at 99%: alone, and beside the other client. It also
 * prints how many connections that client opened a second. */
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/nodetime.h"
#include "base/units.h"
#include "client/client.h"

#define USER     65533
#define ATTACKER 65534
#define PAUSE_MS 5 /* between two requests */

static void become(uid_t uid)
{
    if (setgid(uid) < 0 || setuid(uid) < 0) {
        perror("bench-door: run it as root");
        exit(EXIT_FAILURE);
    }
}

static void attack(const char *path, int64_t *opened)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    become(ATTACKER);
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    for (;;) {
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

        *opened += connect(fd, (struct sockaddr *)&address, sizeof address) == 0;
        close(fd);
    }
}

static int64_t ask(const char *path)
{
    int64_t began_ns = nodetime_monotonic_wall_ns();
    struct client *client;
    json_t *reply = NULL;
    struct error err;
    int status;

    if (client_open(path, &client, &err) != 0 ||
        client_call(client, "GET", "/v1/status", NULL, &status, &reply, &err) != 0 ||
        client_check(status, reply, &err) != 0) {
        fprintf(stderr, "bench-door: %s\n", err.text);
        exit(EXIT_FAILURE);
    }
    json_decref(reply);
    client_free(client);
    return nodetime_monotonic_wall_ns() - began_ns;
}

static int compare(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

/* In a process of its own, that is of another user. Returns the median. */
static double measure(const char *what, const char *path, int seconds, int64_t *latencies_ns, size_t most)
{
    const struct timespec pause = {.tv_nsec = PAUSE_MS * NS_PER_MS};
    int64_t end_ns = nodetime_monotonic_wall_ns() + seconds * NS_PER_SEC;
    size_t count = 0;
    int status;
    pid_t user = fork();

    if (user == 0) {
        become(USER);
        for (size_t i = 0; i < most && nodetime_monotonic_wall_ns() < end_ns; i++) {
            latencies_ns[i] = ask(path);
            nanosleep(&pause, NULL);
        }
        exit(EXIT_SUCCESS);
    }
    if (user < 0 || waitpid(user, &status, 0) < 0 || status != 0)
        exit(EXIT_FAILURE);
    while (count < most && latencies_ns[count])
        count++;
    qsort(latencies_ns, count, sizeof *latencies_ns, compare);
    printf("%-22s %6zu requests, p50 %.2f ms, p99 %.2f ms\n", what, count, (double)latencies_ns[count / 2] / NS_PER_MS,
           (double)latencies_ns[count * 99 / 100] / NS_PER_MS);
    return (double)latencies_ns[count / 2];
}

int main(int argc, char **argv)
{
    int seconds = argc == 3 ? atoi(argv[2]) : 0;
    size_t most = (size_t)(seconds > 0 ? seconds : 0) * 1000 / PAUSE_MS, bytes = (2 * most + 1) * sizeof(int64_t);
    double alone, beside;
    int64_t *shared;
    pid_t attacker;

    if (seconds < 1 || seconds > 600) {
        fprintf(stderr, "usage: bench-door SOCKET SECONDS\n");
        return 2;
    }
    shared = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) {
        perror("bench-door");
        return EXIT_FAILURE;
    }
    alone = measure("alone", argv[1], seconds, shared + 1, most);
    fflush(stdout);
    attacker = fork();
    if (attacker == 0)
        attack(argv[1], shared);
    beside = measure("beside the other", argv[1], seconds, shared + 1 + most, most);
    kill(attacker, SIGKILL);
    waitpid(attacker, NULL, 0);
    printf("ratio %.1f; the other opened %.0f connections a second\n", beside / alone, (double)shared[0] / seconds);
    return 0;
}
