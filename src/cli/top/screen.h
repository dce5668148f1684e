/* The terminal of `carma top` (ncurses): opened, painted on, read, and given back as it was, however the program ends.
 */
#ifndef CARMA_CLI_TOP_SCREEN_H
#define CARMA_CLI_TOP_SCREEN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "cli/top/lines.h"

/* Takes the terminal over. From then on SIGTERM, SIGINT, SIGHUP, SIGQUIT and crashes give it back before they end the
 * program. Resizing, SIGTSTP and SIGCONT write a byte to wake_fd. Where TERM is not known here, the type that it is
 * named after is tried: `note` (may stay "") says so. -ENOTTY: the terminal cannot be used, and why. */
int top_screen_open(int wake_fd, char note[sizeof(struct error)], struct error *err);
void top_screen_close(void);

/* Stops where SIGTSTP came, and looks at the terminal's size: the next picture is painted whole where either changed.
 * To be called when wake_fd was written to. */
void top_screen_catch_up(void);

void top_screen_size(size_t *width, size_t *height);
void top_screen_paint(const struct top_screen *screen);

/* The next key (top/keys.h) that is there; 0: none. False: the terminal is gone. */
bool top_screen_key(uint32_t *key);

#endif
