#!/usr/bin/env python3
"""Prints the shipped distribution of GPU memory over workloads (src/core/guess/prior.c), in ten thousandths.

Usage: python/make_memory_prior.py timm_faketensor.csv

The file holds measured training runs of public vision models on GPUs of 40 GB, as published with GPUMemNet
(docs/formats/datasets.md). Runs at the GPU's end may have needed more. They are spread beyond it by a power law, as the
tail that begins at half of the GPU goes on."""

import csv
import math
import sys

BINS = 81  # PRIOR_BINS, and the edges of src/core/guess/prior.c
CLIPPED_MIB, TAIL_MIB = 38 * 1024, 20 * 1024


def upper_edge(index):
    octave = 512 << (max(index - 1, 0) // 8)
    return octave + octave // 8 * ((index - 1) % 8 + 1) if index else 512


def shares(runs):
    """The share of each bin; of a clipped run, by the tail beyond the place where runs are clipped."""
    whole = [run for run in runs if run < CLIPPED_MIB]
    clipped = len(runs) - len(whole)
    tail = sum(run >= TAIL_MIB for run in runs)
    exponent = math.log(tail / clipped) / math.log(CLIPPED_MIB / TAIL_MIB)
    result, lower = [], 0
    for index in range(BINS):
        upper = upper_edge(index) if index < BINS - 1 else math.inf
        inside = sum(lower < run <= upper for run in whole)
        if upper > CLIPPED_MIB:
            inside += clipped * ((CLIPPED_MIB / max(lower, CLIPPED_MIB)) ** exponent - (CLIPPED_MIB / upper) ** exponent)
        result.append(inside / len(runs))
        lower = upper
    return result


def rounded(parts, total=10000):
    """Whole numbers with that sum: the largest remainders are rounded up."""
    whole = [int(part * total) for part in parts]
    by_remainder = sorted(range(len(parts)), key=lambda index: whole[index] - parts[index] * total)
    for index in by_remainder[:total - sum(whole)]:
        whole[index] += 1
    return whole


def main():
    with open(sys.argv[1], encoding="utf-8", newline="") as file:
        runs = [int(row["max_gpu_memory_mib"]) for row in csv.DictReader(file)]
    for index, part in enumerate(rounded(shares(runs))):
        if part:
            print(f"[{index}] = {part},")


if __name__ == "__main__":
    main()
