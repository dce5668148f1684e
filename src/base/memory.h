/* Allocation that cannot fail (our own programs abort when out of memory: acknowledged data is stored), scope-bound
 * cleanup, and growable arrays. Code that lives in another program's process must not use this file. */
#ifndef CARMA_BASE_MEMORY_H
#define CARMA_BASE_MEMORY_H

#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

void *xmalloc(size_t size);
void *xcalloc(size_t count, size_t size);
void *xrealloc(void *old, size_t count, size_t size); /* checks count * size for overflow */
char *xstrdup(const char *text);                      /* NULL gives NULL */
char *xstrndup(const char *text, size_t length);
char *xasprintf(const char *format, ...) __attribute__((format(printf, 1, 2)));
char *xvasprintf(const char *format, va_list args) __attribute__((format(printf, 1, 0)));

/* `CLEANUP(free_ptr) char *s = ...;` calls free_ptr(&s) at the end of the scope. */
#define CLEANUP(function) __attribute__((cleanup(function)))

void free_ptr(void *pointer_to_pointer); /* frees and clears any heap pointer */
void close_fd(int *fd);                  /* closes where >= 0, keeping errno */

/* Takes ownership out of a CLEANUP variable. */
#define steal_ptr(pp)                                                                                                  \
    ({                                                                                                                 \
        __typeof__(*(pp)) steal_ptr_value = *(pp);                                                                     \
        *(pp) = NULL;                                                                                                  \
        steal_ptr_value;                                                                                               \
    })

/* Grows `items` (with `capacity`) so that at least `wanted` elements fit. */
#define array_reserve(items, capacity, wanted)                                                                         \
    do {                                                                                                               \
        if ((wanted) > (capacity)) {                                                                                   \
            size_t array_reserve_size = (capacity) ? (capacity) : 8;                                                   \
            while (array_reserve_size < (size_t)(wanted))                                                              \
                array_reserve_size *= 2;                                                                               \
            (items) = xrealloc((items), array_reserve_size, sizeof *(items));                                          \
            (capacity) = array_reserve_size;                                                                           \
        }                                                                                                              \
    } while (0)

#define array_size(array) (sizeof(array) / sizeof *(array))

#endif
