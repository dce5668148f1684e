/* bench-submissions SOCKET CLIENTS REQUESTS: CLIENTS processes run at once, each with its own connection. Each submits
 * REQUESTS held jobs, one a request, and waits for each answer: the job is then on the disk. Prints how long all of it
 * took, in seconds, and the requests' latencies at the median and at 99%, in milliseconds. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/nodetime.h"
#include "client/client.h"

static int64_t submit(struct client *client, const json_t *body)
{
    int64_t began_ns = nodetime_monotonic_wall_ns();
    json_t *reply = NULL;
    struct error err;
    int status;

    if (client_call(client, "POST", "/v1/jobs", body, &status, &reply, &err) != 0 ||
        client_check(status, reply, &err) != 0) {
        fprintf(stderr, "bench-submissions: %s\n", err.text);
        exit(EXIT_FAILURE);
    }
    json_decref(reply);
    return nodetime_monotonic_wall_ns() - began_ns;
}

static void run_client(const char *socket, int requests, int64_t *latencies_ns)
{
    json_t *body =
        json_pack("{s:[{s:s, s:[s], s:s, s:s, s:b, s:I}]}", "jobs", "name", "n", "command", "true", "directory", "/",
                  "output", "/dev/null", "held", 1, "gpu_memory_bytes", (json_int_t)1 << 30);
    struct client *client;
    struct error err;

    if (client_open(socket, &client, &err) != 0) {
        fprintf(stderr, "bench-submissions: %s\n", err.text);
        exit(EXIT_FAILURE);
    }
    for (int i = 0; i < requests; i++)
        latencies_ns[i] = submit(client, body);
    client_free(client);
    json_decref(body);
    exit(EXIT_SUCCESS);
}

static int compare(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

int main(int argc, char **argv)
{
    int clients = argc == 4 ? atoi(argv[2]) : 0, requests = argc == 4 ? atoi(argv[3]) : 0, status, failed = 0;
    size_t count = (size_t)clients * (size_t)requests;
    int64_t began_ns, *latencies_ns;

    if (clients < 1 || requests < 1) {
        fprintf(stderr, "usage: bench-submissions SOCKET CLIENTS REQUESTS\n");
        return 2;
    }
    latencies_ns = mmap(NULL, count * sizeof *latencies_ns, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (latencies_ns == MAP_FAILED)
        return EXIT_FAILURE;
    began_ns = nodetime_monotonic_wall_ns();
    for (int i = 0; i < clients; i++)
        if (fork() == 0)
            run_client(argv[1], requests, latencies_ns + (size_t)i * (size_t)requests);
    while (wait(&status) > 0)
        failed += status != 0;
    if (failed)
        return EXIT_FAILURE;
    printf("%.6f ", (double)(nodetime_monotonic_wall_ns() - began_ns) / 1e9);
    qsort(latencies_ns, count, sizeof *latencies_ns, compare);
    printf("%.3f %.3f\n", (double)latencies_ns[count / 2] / 1e6, (double)latencies_ns[count * 99 / 100] / 1e6);
    return 0;
}
