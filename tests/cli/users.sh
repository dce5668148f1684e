# For tests with several users, which need root: sourced in place of node.sh, which it brings. They run in a mount
# namespace of their own, in which alice, bob and carol have accounts; carol is an administrator. Carmad's parent is a
# member of a group that no job may inherit.
# shellcheck shell=sh
if [ "$(id -u)" -ne 0 ]; then
    echo "skipped: only root can act as other users"
    exit 77
fi
if [ -z "${CARMA_TEST_ACCOUNTS-}" ]; then
    CARMA_TEST_ACCOUNTS=$(mktemp -d) || exit 99
    export CARMA_TEST_ACCOUNTS
    if ! unshare --mount true 2>/dev/null; then
        echo "skipped: no mount namespace can be made here"
        rmdir "$CARMA_TEST_ACCOUNTS"
        exit 77
    fi
    {
        cat /etc/passwd
        printf '%s:x:%s:%s::/nonexistent:/bin/sh\n' alice 12001 12001 bob 12002 12002 carol 12003 12003
    } >"$CARMA_TEST_ACCOUNTS/passwd"
    {
        cat /etc/group
        printf 'alice:x:12001:\nbob:x:12002:\ncarol:x:12003:\n'
        printf 'team:x:12050:alice\ncarma-admins:x:12060:carol\ncarma-leak:x:12070:\n'
    } >"$CARMA_TEST_ACCOUNTS/group"
    status=0
    unshare --mount --propagation private setpriv --groups=0,12060,12070 sh "$0" "$@" || status=$?
    rm -rf "$CARMA_TEST_ACCOUNTS"
    exit $status
fi
mount --bind "$CARMA_TEST_ACCOUNTS/passwd" /etc/passwd || exit 99
mount --bind "$CARMA_TEST_ACCOUNTS/group" /etc/group || exit 99
. "$2/tests/cli/node.sh"

uid_of() {
    case $1 in
    alice) echo 12001 ;;
    bob) echo 12002 ;;
    carol) echo 12003 ;;
    esac
}

# as USER COMMAND [ARGUMENT...]: with the user's uid, gid and groups, in the user's home.
as() {
    as_uid=$(uid_of "$1")
    as_home=$T/$1
    shift
    (cd "$as_home" && exec setpriv --reuid="$as_uid" --regid="$as_uid" --init-groups env HOME="$as_home" "$@")
}

# homes: a directory for each user that nobody else can look into; $T itself can be passed through. The programs are copied,
# since the tree may lie where others cannot go.
homes() {
    chmod 711 "$T"
    for link in "$PREFIX"/bin/* "$PREFIX"/lib/carma/* "$PREFIX"/lib/carma/vnode/*; do
        [ ! -f "$link" ] || cp --remove-destination "$(realpath "$link")" "$link"
    done
    CARMA=$PREFIX/bin/carma
    for user in alice bob carol; do
        install -d -m 700 -o "$(uid_of $user)" -g "$(uid_of $user)" "$T/$user"
    done
}

# run_as USER ARGUMENT...: as `run`, by another user.
run_as() {
    run_user=$1
    shift
    said="$run_user: carma $*"
    as "$run_user" "$CARMA" "$@" >"$T/out" 2>"$T/err" </dev/null
    status=$?
}

# allowed USER ARGUMENT...: as run_as, and carma succeeds.
allowed() {
    run_as "$@"
    expect_status 0
}

# refused USER TEXT ARGUMENT...: fails with status 1 and says the text.
refused() {
    refused_user=$1
    refused_text=$2
    shift 2
    run_as "$refused_user" "$@"
    expect_status 1
    grep -qF "$refused_text" "$T/err" || fail "$said: no '$refused_text' in: $(cat "$T/err")"
}
