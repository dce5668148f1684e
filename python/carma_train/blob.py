"""Writes named arrays as carma reads them (src/estimate/learned/model.h holds the layout)."""

import struct

import numpy

MAGIC = b"carma-model 1\n\0\0"
TYPES = {"float32": 0, "int32": 1, "uint64": 2, "uint16": 3}
ENTRY = struct.Struct("<48sII4IQ")


def write(path, arrays):
    """arrays: name (at most 47 bytes) -> numpy array of float32, int32, uint64 or uint16, at most 4 dimensions."""
    arrays = {name: numpy.ascontiguousarray(array) for name, array in arrays.items()}
    offset = len(MAGIC) + 8 + ENTRY.size * len(arrays)
    header, body = [MAGIC, struct.pack("<II", len(arrays), 0)], []
    for name, array in arrays.items():
        encoded = name.encode("ascii")
        if len(encoded) > 47 or array.ndim > 4 or array.dtype.name not in TYPES:
            raise ValueError(f"array {name!r} ({array.dtype}, {array.ndim} dimensions) cannot be written")
        padding = -offset % 8
        body.append(b"\0" * padding)
        offset += padding
        dims = list(array.shape) + [0] * (4 - array.ndim)
        header.append(ENTRY.pack(encoded, TYPES[array.dtype.name], array.ndim, *dims, offset))
        data = array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes()
        body.append(data)
        offset += len(data)
    with open(path, "wb") as file:
        file.write(b"".join(header + body))


def read(path):
    """name -> numpy array, as write() was given them."""
    with open(path, "rb") as file:
        data = file.read()
    if data[:len(MAGIC)] != MAGIC:
        raise ValueError(f"{path}: not a table of models")
    names = {number: name for name, number in TYPES.items()}
    arrays = {}
    for index in range(struct.unpack_from("<I", data, len(MAGIC))[0]):
        name, kind, rank, *dims, offset = ENTRY.unpack_from(data, len(MAGIC) + 8 + index * ENTRY.size)
        shape = tuple(dims[:rank])
        array = numpy.frombuffer(data, numpy.dtype(names[kind]).newbyteorder("<"), int(numpy.prod(shape)), offset)
        arrays[name.rstrip(b"\0").decode("ascii")] = array.astype(names[kind]).reshape(shape)
    return arrays
