#!/bin/sh
# The archive of script/bundle, unpacked under another name: each file finds its libraries inside, and a job runs on a
# virtual node. Arguments: those of lib.sh and node.sh, and a build of script/build.
. "$(dirname "$0")/node.sh"

command -v patchelf >/dev/null || skip "no patchelf here: script/packages bundle installs it"

archive=$("$SOURCE/script/bundle" "$T/made" "$4" 2>"$T/err") || fail "script/bundle: $(cat "$T/err")"
[ -f "$archive" ] || fail "script/bundle printed '$archive', which is not a file"
mkdir "$T/unpacked"
tar -C "$T/unpacked" -xzf "$archive"
mv "$T"/unpacked/carma-* "$T/elsewhere"
rm -rf "$T/made"

# Only glibc comes from the machine.
for file in "$T"/elsewhere/bin/* "$T"/elsewhere/lib/carma/carma-* "$T"/elsewhere/lib/carma/*/*.so* \
    "$T/elsewhere/lib/carma/vnode/nvidia-cuda-mps-control"; do
    foreign=$(ldd "$file" | grep -v -e "=> $T/elsewhere/" -e 'linux-vdso' -e 'ld-linux' \
        -e 'lib\(c\|m\|dl\|pthread\|rt\|resolv\)\.so\.' -e 'statically linked')
    [ -z "$foreign" ] || fail "${file#"$T/"}: takes from the machine: $foreign"
done
[ -s "$T/elsewhere/licenses/carma" ] || fail "carma's own licence is not in the archive"
for library in "$T"/elsewhere/lib/carma/lib/*; do
    [ -f "$library" ] || fail "no libraries in the archive"
done
[ "$(find "$T/elsewhere/licenses" -type f -size +0 | wc -l)" -gt 5 ] || fail "the libraries' licences are missing"

# The checks of a real GPU are there, and find the rest of the bundle by themselves.
"$T/elsewhere/share/carma/gpu/accept" --help >"$T/out" 2>"$T/err" || fail "accept --help: $(cat "$T/err")"
[ -x "$T/elsewhere/share/carma/gpu/train.py" ] || fail "no train.py beside accept"
(cd / && "$T/elsewhere/share/carma/gpu/accept" --bundle /nonexistent "$T/report") >"$T/out" 2>&1 && fail "accept takes any bundle"
grep -q 'has no bin/carma' "$T/out" || fail "accept: $(cat "$T/out")"

# It can be tried as it is.
(unset CARMA_VNODE CARMA_PREFIX CARMA_SOCKET; "$T/elsewhere/script/try" sh -c 'carma submit --wait --gpu-memory 2G -- carma-train --memory 1G --seconds 60 && ls examples') \
    >"$T/out" 2>"$T/err" || fail "script/try of the archive: $(cat "$T/err")"
grep -q train_mlp.py "$T/out" || fail "script/try of the archive has no examples: $(cat "$T/out")"

# A demo that fails shows why, and keeps it once its node is gone.
cp -a "$T/elsewhere" "$T/failing"
printf '#!/bin/sh\necho no luck\nexit 3\n' >"$T/failing/bin/carma-train"
printf 'arrival_s,workload\n0,resnet\n' >"$T/failing/share/carma/traces/thesis_90.csv"
(unset CARMA_VNODE CARMA_PREFIX CARMA_SOCKET; TMPDIR=$T CARMA_DEMO_USERS=thesis_90 "$T/failing/script/demo") >"$T/out" 2>"$T/err"
[ $? -eq 3 ] && grep -q ' F .*exit status 3$' "$T/err" || fail "script/demo that fails: $(cat "$T/out" "$T/err")"
grep -qx 'no luck' "$T"/carma-demo-failed.*/failed && [ -s "$(echo "$T"/carma-demo-failed.*/exclusive.log)" ] ||
    fail "script/demo keeps nothing of what failed: $(ls "$T"/carma-demo* "$T/err")"

unset CARMA_PREFIX
PREFIX=$T/elsewhere
CARMA=$PREFIX/bin/carma
TRAIN=$PREFIX/bin/carma-train
start_all h200x1 50
expect_ok submit -- "$TRAIN" --memory 1G --sm-activity 0.3 --seconds 20
expect_ok wait 1
expect_field 1 state COMPLETED
