/* The columns that python/carma_collect writes beside the published ones: how a run was trained, and on which machine.
 * For the readers of rows; all may be missing. */
#ifndef CARMA_EVALUATION_COLLECTED_H
#define CARMA_EVALUATION_COLLECTED_H

#include "evaluation/rows.h"

enum collected_column {
    COLLECTED_OPTIMIZER,
    COLLECTED_PRECISION,
    COLLECTED_CHECKPOINTING,
    COLLECTED_PROJECTION,
    COLLECTED_RUN,
    COLLECTED_RESERVED, /* this column and later ones are not read */
    COLLECTED_ALLOCATED,
    COLLECTED_STEPS,
    COLLECTED_GPU,
    COLLECTED_GPU_MEMORY,
    COLLECTED_DRIVER,
    COLLECTED_CUDA,
    COLLECTED_CUDNN,
    COLLECTED_TORCH,
    COLLECTED_TF32_CONVOLUTIONS,
    COLLECTED_TF32_MATMUL,
    COLLECTED_SEED
};

/* The end of a table of columns, from index FIRST on. */
#define COLLECTED_COLUMNS(FIRST)                                                                                       \
    [(FIRST) + COLLECTED_OPTIMIZER] = {"optimizer", false}, [(FIRST) + COLLECTED_PRECISION] = {"precision", false},    \
               [(FIRST) + COLLECTED_CHECKPOINTING] = {"checkpointing", false},                                         \
               [(FIRST) + COLLECTED_PROJECTION] = {"projection", false}, [(FIRST) + COLLECTED_RUN] = {"run", false},   \
               [(FIRST) + COLLECTED_RESERVED] = {"allocator_reserved_mib", false},                                     \
               [(FIRST) + COLLECTED_ALLOCATED] = {"allocator_allocated_mib", false},                                   \
               [(FIRST) + COLLECTED_STEPS] = {"steps", false}, [(FIRST) + COLLECTED_GPU] = {"gpu", false},             \
               [(FIRST) + COLLECTED_GPU_MEMORY] = {"gpu_memory_mib", false},                                           \
               [(FIRST) + COLLECTED_DRIVER] = {"driver", false}, [(FIRST) + COLLECTED_CUDA] = {"cuda", false},         \
               [(FIRST) + COLLECTED_CUDNN] = {"cudnn", false}, [(FIRST) + COLLECTED_TORCH] = {"torch", false},         \
               [(FIRST) + COLLECTED_TF32_CONVOLUTIONS] = {"tf32_convolutions", false},                                 \
               [(FIRST) + COLLECTED_TF32_MATMUL] = {"tf32_matmul", false},                                             \
               [(FIRST) + COLLECTED_SEED] = {"seed", false}

/* Changes the assumed values of a row without these columns; the row is otherwise complete. Recomputed activations and
 * Conv1D blocks have no layer list here: such a row keeps its measurement and loses its layers. -EINVAL: the row then
 * owns nothing. */
int dataset_collected(const struct csv *csv, size_t first, struct dataset_row *row, struct error *err);

#endif
