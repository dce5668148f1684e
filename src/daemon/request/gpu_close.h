/* POST /v1/gpus/ACTION: an administrator closes GPUs to further jobs (drain), and opens them: after that (resume), or
 * one on which programs did not start (open; core/gpus/closing.h). */
#ifndef CARMA_DAEMON_REQUEST_GPU_CLOSE_H
#define CARMA_DAEMON_REQUEST_GPU_CLOSE_H

struct daemon;
struct http_request;

void gpu_close(struct daemon *daemon, struct http_request *request);

#endif
