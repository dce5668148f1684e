# For inside.sh and booted.sh, which run in the root tree: shared by both. Sourced with `old` and `new` set.
# shellcheck shell=sh
set -u
tools=/opt/test
failures=0
NODE=/srv/node
export DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8
cd "$tools" || exit 99

fail() {
    echo "FAILED: $*" >&2
    failures=$((failures + 1))
}

give_up() {
    fail "$*"
    tail -n 30 "$tools"/*.log >&2
    exit 1
}

# as_alice COMMAND...: an ordinary user, with the environment of a job on the virtual node.
as_alice() {
    (cd /home/alice && exec setpriv --reuid=alice --regid=alice --init-groups env -i HOME=/home/alice \
        PATH=/usr/local/bin:/usr/bin:/bin CARMA_VNODE="$NODE" "$@")
}

# until_says TEXT COMMAND...: until its output has the text.
until_says() {
    wanted=$1
    shift
    left=900
    until said=$("$@" 2>&1) && case $said in *"$wanted"*) ;; *) false ;; esac; do
        left=$((left - 1))
        [ "$left" -gt 0 ] || give_up "$*: never '$wanted', at last: $said"
        sleep 0.1
    done
}

state_of() {
    carma show --json "$1" | sed -n 's/^ *"state": "\(.*\)",*$/\1/p'
}
