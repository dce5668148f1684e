#include <stdio.h>
#include <unistd.h>

#include "base/units.h"
#include "vnode/train.h"

/* PyTorch's own way to print a size. */
static const char *torch_size(int64_t bytes, char text[static 32])
{
    if (bytes < KIB)
        snprintf(text, 32, "%lld bytes", (long long)bytes);
    else if (bytes < MIB)
        snprintf(text, 32, "%.2f KiB", (double)bytes / KIB);
    else if (bytes < GIB)
        snprintf(text, 32, "%.2f MiB", (double)bytes / MIB);
    else
        snprintf(text, 32, "%.2f GiB", (double)bytes / GIB);
    return text;
}

void train_print_out_of_memory(const struct shortage *s)
{
    char wanted[32], total[32], free_text[32], held[32], zero[32];

    fflush(stdout);
    fprintf(stderr,
            "Traceback (most recent call last):\n"
            "  File \"train.py\", line 1, in <module>\n"
            "    carma-train: climb to the workload's memory\n"
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate %s. GPU %u has a total capacity of %s of "
            "which %s is free. ",
            torch_size(s->wanted_bytes, wanted), s->use, torch_size(s->total_bytes, total),
            torch_size(s->free_bytes, free_text));
    for (uint32_t i = 0; i < s->neighbour_count; i++) {
        char bytes[32];

        fprintf(stderr, "Process %d has %s memory in use. ", s->neighbours[i].pid,
                torch_size(s->neighbours[i].bytes, bytes));
    }
    fprintf(stderr,
            "Including non-PyTorch memory, this process has %s memory in use. Of the allocated memory %s is allocated "
            "by PyTorch, and %s is reserved by PyTorch but unallocated.\n",
            torch_size(s->held_bytes, held), held, torch_size(0, zero));
}
