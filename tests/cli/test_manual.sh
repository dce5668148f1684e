#!/bin/sh
# Manual pages and completion: whole, for every command and option, and fit for the programs that read them.
. "$(dirname "$0")/lib.sh"
BUILD=$3
cd "$T" || exit 99
mkdir pages bin zsh
ln -s "$CARMA" bin/carma
PATH=$T/bin:$PATH

has() {
    command -v "$1" >/dev/null
}

expect_ok help "--man=$T/pages"
"$BUILD/src/daemon/carmad" --man >pages/carmad.8 || fail "carmad --man"
"$BUILD/src/daemon/carmad" --settings-man >pages/carma.conf.5 || fail "carmad --settings-man"
"$BUILD/src/notify/carma-notify" --man >pages/carma-notify.8 || fail "carma-notify --man"
"$BUILD/src/vnode/carma-vnode" --man >pages/carma-vnode.1 || fail "carma-vnode --man"
"$BUILD/src/vnode/carma-train" --man >pages/carma-train.1 || fail "carma-train --man"
for page in pages/*; do
    groff -man -Tutf8 -P-cbou -ww "$page" >"$page.text" 2>"$page.warnings" || fail "$page: groff"
    [ ! -s "$page.warnings" ] || fail "$page: $(cat "$page.warnings")"
done
expect_error 1 "No such file or directory" help --man=nowhere
for shell in bash zsh fish; do
    has $shell || echo "skipped: $shell is not here (script/packages test installs it), so its completion is not tried"
    expect_ok help --completion "$shell"
    cp "$T/out" "carma.$shell"
    ! has "$shell" || "$shell" -n "carma.$shell" || fail "$shell cannot read it"
done
cp carma.zsh zsh/_carma
expect_error 2 "no completion for 'csh'" help --completion csh

# Every command that the help knows has its page, and every option is in it and offered to shells.
commands=$("$CARMA" help | sed -n 's/^  \([a-z]*\)  *[a-z].*/\1/p')
groups=$(for command in $commands; do "$CARMA" "$command" nonsense 2>&1 | sed -n "s/.*there is no '\([a-z]*\) nonsense'.*/\1/p"; done)
for group in $groups; do
    for member in $("$CARMA" "$group" 2>&1 | sed -n 's/.*which one: \(.*\)?.*/\1/p' | tr -d , | sed 's/ or / /'); do
        commands="$commands $group-$member"
    done
done
[ "$(echo "$commands" | wc -w)" -ge 28 ] || fail "too few commands: $commands"
for command in $commands; do
    page=pages/carma-$command.1.text
    [ -s "$page" ] || fail "no page for $command"
    grep -q "carma-$command(1)" pages/carma.1.text || fail "carma(1) has no $command"
    words=$(echo "$command" | tr - ' ')
    # shellcheck disable=SC2086 # a group's command is two words
    "$CARMA" help --complete -- $words - | cut -f 1 >offers || fail "nothing is offered for $words"
    # shellcheck disable=SC2086
    for option in $("$CARMA" help $words | sed -n 's/^ \{1,6\}\(-[a-zA-Z], \)\{0,1\}--\([a-z-]*\).*/\2/p'); do
        grep -q -- "--$option" "$page" || fail "$page: no --$option"
        grep -q -x -e "--$option" offers || fail "shells are offered no $command --$option"
    done
done
for key in $("$BUILD/src/daemon/carmad" --settings | sed -n 's/^  \([a-z_]*\)  *[a-z].*/\1/p'); do
    grep -q "$key" pages/carma.conf.5.text || fail "carma.conf(5): no $key"
done

cat >jobs.json <<'JSON'
{"GET /v1/jobs?folded": [200, {"now_ns": 1, "left_out": 0, "jobs": [
  {"id": 1041, "name": "a", "user": "ada", "uid": 1, "state": "QUEUED", "letter": "Q", "gpus": 1},
  {"id": 1052, "name": "b", "user": "ada", "uid": 1, "state": "QUEUED", "letter": "Q", "gpus": 1}]}]}
JSON
start_fake jobs.json

# in_bash WORD...: bash's offers for the last word.
in_bash() {
    bash --norc -c 'source ./carma.bash; compopt() { :; }; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _carma; echo "${COMPREPLY[*]}"' carma "$@"
}

in_fish() {
    fish --no-config -c 'source ./carma.fish; complete -C "$argv[1]"' "$1" | cut -f 1 | tr '\n' ' ' | sed 's/ $//'
}

# offers WANTED GOT WHERE
offers() {
    [ "$2" = "$1" ] || fail "$3 offers '$2', not '$1'"
}
offers submit "$(in_bash carma subm)" bash
offers "--gpus --gpu-memory --gpu-type" "$(in_bash carma submit --gp)" bash
offers "build show" "$(in_bash carma trace '')" bash
offers "--load" "$(in_bash carma trace build --lo)" bash
offers "1041 1052" "$(in_bash carma cancel 10)" bash
offers "thesis" "$(in_bash carma simulate --policy th)" bash
offers "thesis" "$(in_bash carma simulate --policy = th)" bash
offers "memory_view= memory_floor= memory_margin= memory_fence=" "$(in_bash carma simulate --set memory_)" bash
offers "carma.bash" "$(in_bash carma submit --gpus 2 carma.b)" bash
offers "" "$(in_bash carma submit --gpus '')" bash
offers "jobs.json" "$(in_bash carma run -- cat jobs.j)" bash
offers "bash zsh fish" "$(in_bash carma help --completion '')" bash
if has fish; then
    offers submit "$(in_fish 'carma subm')" fish
    offers "--gpu-memory --gpu-type" "$(in_fish 'carma submit --gpu-')" fish
    offers "build show" "$(in_fish 'carma trace ')" fish
    offers "--load" "$(in_fish 'carma trace build --lo')" fish
    offers "1041 1052" "$(in_fish 'carma cancel 10')" fish
    offers "thesis" "$(in_fish 'carma simulate --policy th')" fish
    offers "--policy=thesis" "$(in_fish 'carma simulate --policy=th')" fish
    offers "--summary=jobs.json" "$(in_fish 'carma submit --summary=jobs.j')" fish
fi
if has zsh; then
    python3 "$SOURCE/tests/cli/complete_zsh.py" "$T/zsh" 'carma subm' 'carma submit --gpu-m' 'carma trace bui' 'carma trace build --loa' \
        'carma cancel 105' 'carma simulate --policy=thes' >zsh.got || fail "zsh: $(cat zsh.got)"
    cat >zsh.wanted <<'WANTED'
carma submit
carma submit --gpu-memory
carma trace build
carma trace build --load
carma cancel 1052
carma simulate --policy=thesis
WANTED
    cmp -s zsh.wanted zsh.got || fail "zsh: $(diff zsh.wanted zsh.got)"
fi
