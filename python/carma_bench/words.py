"""The words that a program gets from carma (src/cli/programs): "--NAME" and "--NAME=VALUE", each known to be an option,
times in nanoseconds; then "--" and the words of a command."""


def options_of(words, lists=()):
    """The options by their names, those in `lists` with all their values; and the words of the command."""
    options, rest = {name: [] for name in lists}, []
    for at, word in enumerate(words):
        if word == "--":
            rest = words[at + 1 :]
            break
        name, _, value = word[2:].partition("=")
        if name in lists:
            options[name].append(value)
        else:
            options[name] = value if "=" in word else True
    return options, rest
