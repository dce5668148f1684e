#!/bin/sh
# The archive that script/bundle builds for glibc 2.28 (a compiler from PyPI, sources from Debian: skipped without
# them). No file needs a newer symbol, nor another library than glibc's. A user without root unpacks and runs it as on
# Linux 4.18, and installs the wheel that script/wheel makes of it. Arguments: those of lib.sh.
. "$(dirname "$0")/lib.sh"
user=
[ "$(id -u)" -ne 0 ] || user="setpriv --reuid 54321 --regid 54321 --clear-groups"

archive=$("$SOURCE/script/bundle" "$T/made" 2>"$T/err")
if [ -z "$archive" ] && grep -q -e 'package index' -e 'cannot be fetched' -e 'apt-get update' "$T/err"; then
    echo "SKIP: $(cat "$T/err")"
    rm -rf "$T"
    exit 77
fi
[ -n "$archive" ] || { fail "script/bundle: $(cat "$T/err")"; exit 1; }
case $archive in
*-glibc2.28.tar.gz) ;;
*) fail "script/bundle does not name glibc 2.28: $archive" ;;
esac

home=$T/home
mkdir "$home"
mv "$archive" "$home/archive.tar.gz"
cp "$SOURCE/tests/cli/old_kernel.py" "$home"
wheel=$("$SOURCE/script/wheel" "$home/wheels" "$T"/made/carma-*/ 2>"$T/err") || fail "script/wheel: $(cat "$T/err")"
case $wheel in
*-py3-none-manylinux_2_28_x86_64.whl) ;;
*) fail "script/wheel does not name glibc 2.28: $wheel" ;;
esac
rm -rf "$T/made"
if [ -n "$user" ]; then
    chmod 711 "$T"
    chown -R 54321:54321 "$home"
fi
as_user() {
    # shellcheck disable=SC2086 # words on purpose
    $user env -i HOME="$home" TMPDIR="$home" PATH=/usr/bin:/bin "$@"
}
cd "$home" || exit 99
as_user tar -xzf archive.tar.gz || fail "the archive cannot be unpacked"
mv carma-* unpacked

count=0
find unpacked -type f -exec sh -c 'head -c4 "$1" | grep -q ELF' _ {} \; -print >programs
while read -r file; do
    count=$((count + 1))
    newest=$(readelf -V "$file" | grep -o 'GLIBC_[0-9.]*' | sort -u -V | tail -n 1)
    [ "$(printf '%s\nGLIBC_2.28\n' "$newest" | sort -V | tail -n 1)" = GLIBC_2.28 ] || fail "$file needs $newest"
    foreign=$(readelf -d "$file" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | grep -v '^lib\(c\|m\|dl\|pthread\|rt\)\.so\.')
    [ -z "$foreign" ] || fail "$file needs $foreign"
done <programs
[ $count -ge 12 ] || fail "$count programs and libraries in the archive, at least 12 wanted"
for library in libuv1-dev libjansson-dev libmicrohttpd-dev libsqlite3-dev libinih-dev zlib1g-dev libncurses-dev zig; do
    [ -s "unpacked/licenses/$library" ] || fail "no licence of $library"
done

# A job from its submission to its end, and one that is cancelled, within the time that these take on a newer kernel.
as_user python3 -B old_kernel.py unpacked/script/try sh -ec '
    carma submit --wait --gpu-memory 2G -- carma-train --memory 1G --seconds 60
    carma submit -- sleep 1000
    carma wait --until state=RUNNING @
    carma cancel @
    carma wait @ || carma queue --all' >out 2>err || fail "script/try: $(cat out err)"
grep -q ' CD .*' out && grep -q ' CA .*' out || fail "script/try: $(cat out err)"

# carmad as oneself, of the archive and of the wheel: its places are the user's.
as_user /usr/bin/python3 -m venv venv
as_user venv/bin/pip install -q --no-index "$wheel" || fail "pip cannot install $wheel"
as_user venv/bin/carma-vnode create node --profile a100x4-40g
for bin in "$home/unpacked/bin" "$home/venv/bin"; do
    as_user CARMA_VNODE="$home/node" sh -c 'echo $$ >pid; exec "$@"' sh "$bin/carmad" \
        --set nvml_library="${bin%bin}lib/carma/vnode/libnvidia-ml.so.1" >log 2>&1 &
    wait_for 'as_user "$bin/carma" gpus >out 2>&1'
    [ -S .local/state/carma/carma.sock ] || fail "$bin/carmad: no socket in the home: $(cat log)"
    as_user "$bin/carma" submit --wait -o job.out -- echo "by $bin" >told 2>&1 || fail "$bin/carma: $(cat told log)"
    grep -qx "by $bin" job.out || fail "$bin/carma: a job's output is $(cat job.out)"
    kill "$(cat pid)"
    wait
done
as_user venv/bin/python -c 'import carma; print(carma.__version__)' >out 2>&1
[ "$(cat out)" = "$("$CARMA" --version | sed 's/.* //')" ] || fail "the wheel's module: $(cat out)"
cd /
