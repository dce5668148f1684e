/* Stands in for `python3 -c` with carma's tiny step on a virtual node: takes memory, and reports what PyTorch's
 * allocator would have. FAKE_STEP=garbage: it writes something else; FAKE_STEP=fails: nothing. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "vnode/attach.h"

#define RESERVED_MIB    22
#define CONTEXT_MIB     1500
#define CUDNN_MIB       260
#define WORKSPACE_BYTES 8519680

static void hold(struct attachment *attachment, int64_t mib)
{
    int64_t bytes[NODE_MAX_GPUS] = {mib * MIB};
    struct shortage shortage;

    if (attach_hold(attachment, bytes, &shortage, NULL))
        exit(1);
}

static void report(const char *step, int64_t reserved_mib, int64_t used_mib)
{
    printf("{\"step\": \"%s\", \"torch\": \"2.4.1+cu121\", \"reserved_bytes\": %lld, \"used_bytes\": %lld, "
           "\"cublas_workspace_bytes\": %d}\n",
           step, (long long)(reserved_mib * MIB), (long long)(used_mib * MIB), WORKSPACE_BYTES);
    fflush(stdout);
    getchar();
}

int main(int argc, char **argv)
{
    const char *fake = getenv("FAKE_STEP");
    struct node_slot wanted = {.use_count = 1, .uses = {{.gpu = 0}}};
    struct attachment attachment;
    struct node node;

    if (argc != 3 || strcmp(argv[1], "-c") != 0 || !strstr(argv[2], "tiny_step") || !getenv("PYTHONPATH"))
        return 2;
    if (fake && strcmp(fake, "fails") == 0)
        return 3;
    if (fake && strcmp(fake, "garbage") == 0) {
        puts("{\"step\": \"linear\"}");
        return 0;
    }
    if (node_open(&node, NULL, NULL) || attach_begin(&attachment, &node, &wanted, NULL))
        return 1;
    hold(&attachment, CONTEXT_MIB + RESERVED_MIB);
    report("linear", RESERVED_MIB, CONTEXT_MIB + RESERVED_MIB);
    hold(&attachment, CONTEXT_MIB + CUDNN_MIB + RESERVED_MIB + 2);
    report("convolution", RESERVED_MIB + 2, CONTEXT_MIB + CUDNN_MIB + RESERVED_MIB + 2);
    attach_end(&attachment);
    return 0;
}
