/* POST /v1/gpus/open: an administrator opens a GPU on which programs did not start (core/gpus/closing.h). */
#ifndef CARMA_DAEMON_REQUEST_GPU_OPEN_H
#define CARMA_DAEMON_REQUEST_GPU_OPEN_H

struct daemon;
struct http_request;

void gpu_open(struct daemon *daemon, struct http_request *request);

#endif
