/* Trained tables (data/models/NAME.bin), linked into the program: named arrays of numbers. python/carma_train/blob.py
 * writes them. Layout, little endian: "carma-model 1\n\0\0" (16 bytes), u32 count, u32 0. Per array: char name[48], u32
 * type (0 f32, 1 i32, 2 u64, 3 u16), u32 rank, u32 dims[4], u64 offset of its data from the file's start (8-aligned).
 */
#ifndef CARMA_ESTIMATE_MODEL_H
#define CARMA_ESTIMATE_MODEL_H

#include <stddef.h>
#include <stdint.h>

enum model_type { MODEL_F32, MODEL_I32, MODEL_U64, MODEL_U16 };

struct model {
    const unsigned char *data; /* borrowed */
    size_t length;
};

struct model_array {
    const void *data; /* NULL: no array of that name and type, or it lies outside */
    uint32_t rank, dims[4];
    size_t count; /* elements */
};

/* A model linked in: "gpumemnet", "replay", "utilisation"; with the folds' models: "gpumemnet-folds", ...
 * which only the evaluation links. data NULL: none of that name. */
struct model model_find(const char *name);
struct model_array model_array(struct model model, const char *name, enum model_type type);

#endif
