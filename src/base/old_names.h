/* What was called otherwise in 0.1, and is still understood: settings, values, options (docs/changes.md). */
#ifndef CARMA_BASE_OLD_NAMES_H
#define CARMA_BASE_OLD_NAMES_H

/* What `name` is called today; `name` itself where that has not changed. Borrowed. */
const char *present_name(const char *name);

#endif
