"""Usage: symbols.py LIBRARY...: fails when a pure module's library (libcore.a, ...) needs a symbol from outside that is not
on its list: a clock, a file, the environment, randomness, a lock.

An optimised build without sanitizers is looked at: those add symbols of their own."""

import pathlib
import subprocess
import sys

# The compiler's own symbols, and the C library's pure functions (with their fortified forms).
PURE = """
    _GLOBAL_OFFSET_TABLE_ __stack_chk_fail __assert_fail abort
    memchr memcmp memcpy memmove memset strchr strcmp strcspn strlen strncmp strnlen strrchr strspn strstr
    strtok_r
    __memcpy_chk __memmove_chk __memset_chk
"""
# Text and memory of base.
TEXT = """
    bsearch free qsort snprintf vsnprintf __snprintf_chk __vsnprintf_chk
    xmalloc xcalloc xrealloc xstrdup xstrndup xasprintf free_ptr
    error_set error_set_at error_prefix nearest_refuse parse_integer parse_size format_bytes format_duration share_mode_name
    strbuf_append strbuf_puts strbuf_printf strbuf_clear strbuf_release strbuf_steal
"""
MATH = "cbrt ceil erfc exp exp2 expf expm1 fabs floor fmax fmin log log1p log2 pow round sqrt sqrtf"

ALLOWED = {
    "core": (PURE + TEXT).split(),
    "contention": (PURE + MATH).split(),  # lives in unmanaged processes: allocates nothing, formats nothing
    "estimate": (PURE + TEXT + MATH).split(),
}


def symbols(library, *options):
    output = subprocess.run(["nm", "-g", *options, library], check=True, capture_output=True, text=True).stdout
    return {line.split()[-1] for line in output.splitlines() if line.strip() and not line.endswith(":")}


def violations(library):
    module = pathlib.Path(library).name.removeprefix("lib").removesuffix(".a")
    if module not in ALLOWED:
        yield f"{library}: '{module}' has no list in tests/layers/symbols.py"
        return
    defined = symbols(library, "--defined-only")
    if not defined:
        yield f"{library}: defines nothing: the check has looked at nothing"
    for name in sorted(symbols(library, "--undefined-only") - defined - set(ALLOWED[module])):
        yield f"{library}: needs '{name}', which {module} may not use"


def main(libraries):
    found = [line for library in libraries for line in violations(library)]
    for line in found:
        print(line)
    return 1 if found or not libraries else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
