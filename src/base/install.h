/* Where this installation keeps its own files: everything is found from the running program, so that a tree can be
 * moved as a whole. Layout: PREFIX/bin, PREFIX/lib/carma (helper programs), PREFIX/share/carma (data). */
#ifndef CARMA_BASE_INSTALL_H
#define CARMA_BASE_INSTALL_H

/* PREFIX/relative, owned by the caller, e.g. install_path("lib/carma/carma-shepherd"). PREFIX is CARMA_PREFIX where
 * that is set (tests of programs that are not installed), else the parent of bin/ or lib/ that holds the program. */
char *install_path(const char *relative);

/* The file `name` in the folder of the running program, owned by the caller: a build tree keeps its parts there. */
char *install_beside(const char *name);

#endif
