#!/bin/sh
# Usage: test_packages.sh SOURCE
# The Debian packages of script/deb in a root tree that debootstrap makes of the mirror that apt is configured with;
# nothing of it is kept. First without a running systemd: tests/packages/systemctl plays its part. Then, where the
# machine lets systemd-nspawn boot the tree, with it.
set -u
SOURCE=$1

skip() {
    echo "skipped: $*"
    exit 77
}

[ "$(id -u)" -eq 0 ] || skip "only root can make a root tree"
for program in debootstrap lintian dh dpkg-buildpackage apt-get unshare setpriv; do
    command -v "$program" >/dev/null || skip "no $program here: script/packages test installs it"
done
[ -e /usr/include/slurm/spank.h ] || skip "no libslurm-dev here: script/packages test installs it"
release=$(. /etc/os-release && echo "${VERSION_CODENAME-}")
[ -n "$release" ] && [ -e "/usr/share/debootstrap/scripts/$release" ] || skip "debootstrap does not know '$release'"
mirror=$(apt-get indextargets --format '$(RELEASE) $(COMPONENT) $(REPO_URI)' 'Created-By: Packages' | sed -n "s/^$release main //p" | head -n 1)
[ -n "$mirror" ] || skip "apt knows no mirror for $release"
unshare --mount --pid --fork true 2>/dev/null || skip "no namespaces can be made here"

T=$(mktemp -d) || exit 99
# systemd-nspawn leaves a directory of the machine's behind.
trap 'rm -rf --one-file-system "$T"; rmdir "/run/systemd/nspawn/propagate/carma-$$" 2>/dev/null || true' EXIT
trap 'exit 1' INT TERM

# As apt goes to the mirror, so does debootstrap, and apt in the tree.
eval "$(apt-config shell http_proxy Acquire::http::Proxy https_proxy Acquire::https::Proxy)"
export http_proxy="${http_proxy-}" https_proxy="${https_proxy-}"
include=
case $mirror in
https:*) include=--include=ca-certificates ;;
esac

# The build takes the processors, the tree the network and the disk.
"$SOURCE/script/deb" "$T/made" >"$T/made.log" 2>&1 &
building=$!
# shellcheck disable=SC2086 # no word or one
debootstrap --variant=minbase $include "$release" "$T/root" "$mirror" >"$T/bootstrap.log" 2>&1 || {
    wait "$building"
    ! grep -qE 'mknod|nodev' "$T/bootstrap.log" || skip "no device files can be made here"
    tail -n 5 "$T/bootstrap.log" >&2
    exit 1
}
wait "$building" || {
    echo "script/deb failed: $(cat "$T/made.log")" >&2
    exit 1
}

# The packages, each in a higher version too: the same but for its number.
old=$(sed -n "s/^ *version: '\(.*\)',$/\1/p" "$SOURCE/meson.build")
new=$old+upgrade
tools=$T/root/opt/test
mkdir -p "$tools/$old" "$tools/$new"
for package in carma carma-vnode python3-carma carma-slurm; do
    set -- "$T/made/${package}_${old}"_*.deb
    [ -f "$1" ] || {
        echo "script/deb makes no package $package: $(ls "$T/made")" >&2
        exit 1
    }
    cp "$1" "$tools/$old/"
    dpkg-deb -R "$1" "$T/again"
    sed -i -e "s/^Version: .*/Version: $new/" -e "s/(= $old)/(= $new)/g" "$T/again/DEBIAN/control"
    dpkg-deb -Znone -b "$T/again" "$tools/$new/" >/dev/null || exit 1
    rm -rf "$T/again"
done
cp "$SOURCE/tests/fakes/service_manager.py" "$SOURCE/tests/packages/systemctl" "$SOURCE"/tests/packages/*.sh "$tools/"
[ -z "$include" ] || cp /etc/ssl/certs/ca-certificates.crt "$T/root/etc/ssl/certs/"
echo force-unsafe-io >"$T/root/etc/dpkg/dpkg.cfg.d/test"

# Processes of the tree end with its first one. The network is there for apt alone.
unshare --mount --pid --fork --kill-child --propagation private sh -c 'mount -t proc proc "$1/proc" && mount -t tmpfs tmpfs "$1/run" &&
    exec env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin http_proxy="$http_proxy" \
    https_proxy="$https_proxy" chroot "$1" sh /opt/test/inside.sh "$2" "$3"' sh "$T/root" "$old" "$new" || exit 1

# The service's first message is that systemd has booted.
if ! command -v systemd-nspawn >/dev/null; then
    echo "without systemd: no systemd-nspawn here: script/packages test installs it"
    exit 0
fi
rm -rf "$T/root/srv/node" "$T/root/home/alice/go" "$T/root/home/alice"/*.log "$tools"/*.log
cat >"$T/root/etc/systemd/system/test.service" <<END
[Unit]
After=multi-user.target
[Service]
Type=oneshot
WorkingDirectory=/opt/test
ExecStart=sh -c 'echo booted >status; sh booted.sh $old $new >said 2>&1; echo \$? >status'
ExecStopPost=systemctl --no-block poweroff
END
ln -s /etc/systemd/system/test.service "$T/root/etc/systemd/system/multi-user.target.wants/"
for unit in apt-daily.timer apt-daily-upgrade.timer e2scrub_all.timer; do
    ln -sf /dev/null "$T/root/etc/systemd/system/$unit"
done
SYSTEMD_NSPAWN_UNIFIED_HIERARCHY=1 timeout -k 10 300 systemd-nspawn --directory="$T/root" --machine="carma-$$" --boot --register=no \
    --keep-unit --private-network --quiet </dev/null >"$T/boot.log" 2>&1
if [ ! -s "$tools/status" ]; then
    echo "without systemd: it does not boot here: $(tail -n 3 "$T/boot.log")"
    exit 0
fi
[ "$(cat "$tools/status")" = 0 ] || {
    cat "$tools/said" >&2
    exit 1
}
echo "with systemd: passed"
