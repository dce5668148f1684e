"""Usage: complete_zsh.py DIRECTORY TYPED...: the completion by an interactive zsh of each TYPED and a tab, a line each, with the
completion functions of DIRECTORY."""

import os
import pty
import re
import select
import sys
import time

PATIENCE_SECONDS = 90
PROMPT = "ready> "


def read_until(fd, text):
    said, end = "", time.monotonic() + PATIENCE_SECONDS
    while text not in said:
        if time.monotonic() > end or not select.select([fd], [], [], 5)[0] and time.monotonic() > end:
            sys.exit(f"zsh did not say {text!r}: {said!r}")
        if select.select([fd], [], [], 0.1)[0]:
            said += os.read(fd, 65536).decode(errors="replace")
    return said


def main(directory, typed):
    pid, fd = pty.fork()
    if pid == 0:
        os.environ.update(TERM="dumb", PS1=PROMPT)
        os.execvp("zsh", ["zsh", "-f", "-i"])
    setup = f"PS1='{PROMPT}'; unsetopt zle_bracketed_paste prompt_cr prompt_sp; fpath=({directory} $fpath); "
    setup += "autoload -U compinit; compinit -u -D; setopt no_beep no_always_last_prompt\n"
    os.write(fd, (setup + "print setup-done\n").encode())
    read_until(fd, "\nsetup-done")
    for text in typed:
        # zsh itself writes the line's content after the tab, into a word that comes back printed; ^A is the line's
        # begin.
        os.write(fd, (text + "\t").encode() + b"\x01print -r -- 'LINE:\x05:END'\n")
        said = read_until(fd, ":END\r\n").replace("\x07", "")
        lines = re.findall(r"^LINE:(.*):END\r?$", said, re.MULTILINE)
        print(lines[-1].rstrip() if lines else f"?{said!r}")
    os.write(fd, b"exit\n")
    os.waitpid(pid, 0)


main(sys.argv[1], sys.argv[2:])
