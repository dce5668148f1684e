"""Reads the output of bench-features: one row per measured run, with the features that carma's C code computes."""

import csv

import numpy

FIRST_FEATURE = "MAIN"
MIB = 1 << 20
CONTEXT_BYTES = 1690 * MIB  # FEATURES_CONTEXT_BYTES of src/estimate/learned/features.h


class Rows:
    """Columns as arrays; `features` and `utilisation` are float32 matrices with `names` and `utilisation_names`."""

    def __init__(self, path):
        with open(path, newline="", encoding="utf-8") as file:
            reader = csv.reader(file)
            header = next(reader)
            lines = list(reader)
        first = header.index(FIRST_FEATURE)
        later = next(i for i, name in enumerate(header) if name.startswith("U_"))
        self.names, self.utilisation_names = header[first:later], header[later:]
        self.features = numpy.array([line[first:later] for line in lines], numpy.float32)
        self.utilisation = numpy.array([line[later:] for line in lines], numpy.float32)
        column = {name: [line[i] for line in lines] for i, name in enumerate(header[:first])}
        self.kind = numpy.array(column["kind"])
        self.group = numpy.array(column["group"])
        self.name = numpy.array(column["name"])
        self.key = numpy.array([int(key, 16) for key in column["key"]], numpy.uint64)
        self.fold = numpy.array(column["fold"], int)
        self.out_of_memory = numpy.array(column["out_of_memory"], int) == 1
        self.convolutions = numpy.array(column["convolutions"], int)
        for name in ("measured_bytes", "smact", "smocc", "context_bytes", "cudnn_bytes", "memory_bytes", "base_bytes"):
            setattr(self, name, numpy.array(column[name], float))
        self.reserved_bytes = numpy.array(column["reserved_bytes_0"], float)
        # As if the machine's context were the one that the base is made with.
        shift = CONTEXT_BYTES - self.context_bytes - self.cudnn_bytes
        self.need_bytes, self.most_bytes = self.measured_bytes + shift, self.memory_bytes + shift

    def select(self, mask):
        chosen = object.__new__(Rows)
        for name, value in self.__dict__.items():
            setattr(chosen, name, value[mask] if isinstance(value, numpy.ndarray) else value)
        return chosen


def hash_of(names):
    """FNV-1a of the names, each with a comma after it (src/estimate/learned/trees.h)."""
    value = 14695981039346656037
    for byte in "".join(name + "," for name in names).encode("ascii"):
        value = ((value ^ byte) * 1099511628211) & 0xFFFFFFFFFFFFFFFF
    return value
