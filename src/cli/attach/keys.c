#include "cli/attach/keys.h"

#include <unistd.h>

bool keys_are_ours(void)
{
    return tcgetpgrp(STDIN_FILENO) == getpgrp();
}

bool keys_are_here(void)
{
    return isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) && keys_are_ours();
}

void keys_take(struct keys *keys)
{
    struct termios raw;

    if (!keys_are_here() || tcgetattr(STDIN_FILENO, &keys->before) < 0)
        return;
    raw = keys->before;
    cfmakeraw(&raw);
    keys->taken = tcsetattr(STDIN_FILENO, TCSADRAIN, &raw) == 0;
}

void keys_leave(struct keys *keys)
{
    if (keys->taken)
        tcsetattr(STDIN_FILENO, TCSADRAIN, &keys->before);
    keys->taken = false;
}
