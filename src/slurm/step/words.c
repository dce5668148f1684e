#include "slurm/step/words.h"

#include <string.h>

#include "base/memory.h"
#include "base/text/printable.h"

json_t *words_json(const char *bytes, size_t length)
{
    CLEANUP(free_ptr) char *text = xmalloc(length + 1);

    memcpy(text, bytes, length);
    text[length] = '\0';
    for (size_t at = 0, wide; at < length; at += wide)
        if (printable_decode(text + at, &wide) <= 0)
            text[at] = '?';
    return json_stringn(text, length);
}

json_t *words_json_of(const char *text)
{
    return words_json(text, strlen(text));
}
