/* The trained tables of data/models, as they lie. A table that is not there is empty. */
#define TABLE(NAME, FILE)                   \
    .balign 64;                             \
    .globl carma_model_##NAME;              \
    .hidden carma_model_##NAME;             \
    carma_model_##NAME:                     \
    .incbin FILE;                           \
    .globl carma_model_##NAME##_end;        \
    .hidden carma_model_##NAME##_end;       \
    carma_model_##NAME##_end:

    .section .rodata
TABLE(gpumemnet, "gpumemnet.bin")
TABLE(replay, "replay.bin")
TABLE(utilisation, "utilisation.bin")

    .section .note.GNU-stack, "", @progbits
