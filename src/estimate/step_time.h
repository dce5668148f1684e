/* The time of a training step on a named GPU, and how busy it keeps the SMs and the memory. It is a roofline over the
 * operators of the recorded (or lowered) step.
 *
 * The record has each operator's result, each convolution's geometry, and the sum of the multiply-adds of the matrix
 * products; not the operators that allocate nothing. With the GPU's peaks (data sheets, dense):
 *
 *   of an operator        t = max(traffic / (MEMORY_PART * bandwidth), FLOOR_S); its result is written and read twice
 *   of a convolution      t = max(operations / (TENSOR_PART or CUDA_PART * peak), traffic / ..., FLOOR_S)
 *   of matrix products    t = 3 * operations / (GEMM_PART * peak), in the training's precision
 *   of the optimizer      t = traffic of parameters, gradients and states / ...
 *   step time             T = max(sum of t, HOST_S for each operator)
 *   SM activity           sum of t times the part of the SMs that the result's tiles cover / T
 *   DRAM activity         traffic / bandwidth / T, the traffic once
 *
 * A convolution runs in TF32 where its tensors are fp32 and the GPU has it (PyTorch's default). Tensor cores want
 * channels last: cuDNN turns the tensors around, which triples the traffic. The backward pass of matrix products has
 * twice the operations of the forward pass. Kernels are launched ahead, by a host that is slower than a small kernel.
 *
 * The parts and times are rounded fits to published measurements of CNNs (`bench/step_time` prints them and the
 * errors). Waiting for data is in the quantiles alone, which are those of measured over computed figures. */
#ifndef CARMA_ESTIMATE_STEP_TIME_H
#define CARMA_ESTIMATE_STEP_TIME_H

#include "estimate/profile.h"
#include "estimate/program/lower.h"
#include "estimate/program/program.h"

/* A median, and the quantiles 0.1 and 0.9. */
struct spread_figure {
    int64_t median, low, high;
};

struct step_time {
    bool known;
    struct spread_figure step_ns, smact_permille, dram_permille;
};

/* known is false where the record has no step, or the GPU's peaks are not known. */
struct step_time step_time_of(const struct program *program, const struct training *training,
                              const struct machine_profile *profile);

#endif
