#!/bin/sh
# Usage: install_manual.sh CARMA CARMAD CARMA_VNODE CARMA_TRAIN CARMA_NOTIFY
# Run by `meson install`: the programs print their manual pages and the completion for shells.
set -eu
share=$MESON_INSTALL_DESTDIR_PREFIX/share
man=$share/man
bash=$share/bash-completion/completions zsh=$share/zsh/site-functions fish=$share/fish/vendor_completions.d
mkdir -p "$man/man1" "$man/man5" "$man/man8" "$bash" "$zsh" "$fish"
"$1" help "--man=$man/man1"
"$2" --man >"$man/man8/carmad.8"
"$2" --settings-man >"$man/man5/carma.conf.5"
"$5" --man >"$man/man8/carma-notify.8"
"$3" --man >"$man/man1/carma-vnode.1"
"$4" --man >"$man/man1/carma-train.1"
"$1" help --completion bash >"$bash/carma"
"$1" help --completion zsh >"$zsh/_carma"
"$1" help --completion fish >"$fish/carma.fish"
