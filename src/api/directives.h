/* Submit options inside a script, carma's and Slurm's:
 *
 *     #!/bin/sh
 *     #CARMA --gpus 2 --gpu-memory 12G
 *     #CARMA -J "my run"   # a comment
 *
 * They are read from the comment lines at the script's top; the first other line ends them. Format:
 * docs/formats/rad.md. */
#ifndef CARMA_API_DIRECTIVES_H
#define CARMA_API_DIRECTIVES_H

#include <stddef.h>

#include "api/spec_strings.h"
#include "base/error.h"

/* Appends the text behind the marker ("#CARMA", "#SBATCH"), as words of a command line, to *words (which the caller
 * releases, after an error too). `file` is the name in messages, "FILE:LINE: ...". */
int directives_parse(const char *marker, const char *file, const char *text, size_t length, struct spec_strings *words,
                     struct error *err);

#endif
