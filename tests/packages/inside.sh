#!/bin/sh
# Usage: inside.sh OLD NEW, in a fresh root tree: the packages in /opt/test/OLD are installed, upgraded to those in
# /opt/test/NEW while a job runs, removed, installed again, and purged. Run by test_packages.sh.
set -u
old=$1
new=$2
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
    tail -n 30 "$tools/carmad.log" "$tools/apt.log" >&2
    exit 1
}

get() {
    apt-get -q -y -o DPkg::Use-Pty=0 "$@" >>apt.log 2>&1
}

# as_alice COMMAND...: an ordinary user, with what a job on the virtual node needs.
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

# All that belongs to packages, with the directories; not what apt and dpkg keep about them, and not this test's.
files() {
    find / -xdev \( -path /proc -o -path /sys -o -path /dev -o -path "$tools" -o -path /home/alice -o -path "$NODE" \
        -o -path /tmp -o -path /var/lib/dpkg -o -path /var/lib/apt -o -path /var/cache -o -path /var/log -o -path /root \) \
        -prune -o -print | sort
}

# ---- A fresh install ----
# Everything that the packages need comes first, so that the lists of files tell of the packages alone.
needed=$(apt-get -s install "$tools/$old"/*.deb 2>apt.log | sed -n 's/^Inst \([^ ]*\) .*/\1/p' | grep -vE '^(carma|carma-vnode|python3-carma)$')
[ -n "$needed" ] || give_up "apt does not find what the packages need"
# shellcheck disable=SC2086 # a list
get install --no-install-recommends $needed || give_up "apt cannot install what the packages need"
useradd --create-home alice
files >before
mkdir -p /run/systemd/system # from now on the packages' scripts believe that systemd runs
dpkg-divert --local --quiet --rename --add /bin/systemctl
install -m 755 "$tools/systemctl" /bin/systemctl

get install "$tools/$old"/*.deb || give_up "the packages cannot be installed"
grep -q '^--quiet --system start carmad.service$' systemctl.log || fail "carmad was not started: $(cat systemctl.log)"
[ "$(carma --version)" = "carma $old" ] && [ "$(carmad --version)" = "carmad $old" ] || fail "carma --version: $(carma --version)"
[ "$(stat -c '%a %U' /var/lib/carma)" = '700 root' ] || fail "/var/lib/carma: $(stat -c '%a %U' /var/lib/carma)"
[ "$(stat -c '%a' /run/carma/carma.sock)" = 666 ] || fail "the socket: $(stat -c '%a' /run/carma/carma.sock)"
getent group carma-admin >/dev/null || fail "no group carma-admin"
for unit in carmad.service carmad.socket; do
    systemd-analyze verify --man=no "/lib/systemd/system/$unit" >verify.log 2>&1 || fail "$unit: $(cat verify.log)"
    [ ! -s verify.log ] || fail "$unit: $(cat verify.log)"
done
as_alice carma queue >/dev/null || fail "an ordinary user cannot ask a fresh installation"

# ---- Used, and upgraded under a running job ----
# As an administrator would: the setting in the file, the environment in a drop-in.
carma-vnode create "$NODE" --profile a100x4-40g >/dev/null || give_up "carma-vnode"
chmod -R a+rwX "$NODE"
echo "export CARMA_VNODE=$NODE" >environment
echo 'nvml_library = /usr/lib/carma/vnode/libnvidia-ml.so.1' >>/etc/carma/carma.conf
systemctl stop carmad.service
systemctl start carmad.service
until_says 'A100' carma gpus

# The job ends when it is told to; what it writes tells how often it ran.
cat >/home/alice/job <<'END'
echo "begins as $(id -un)"
carma-train --memory 1G --sm-activity 0.3 --seconds 2 >/dev/null && echo "trained"
while [ ! -e "$1" ]; do sleep 0.1; done
echo "ends"
END
as_alice carma submit --parsable -o first.log -- sh /home/alice/job /home/alice/go >submitted 2>&1 || give_up "submit: $(cat submitted)"
until_says trained cat /home/alice/first.log
shepherd=$(sed -n 's/^shepherd //p' /var/lib/carma/runs/1-*/status)
dpkg -i "$tools/$new"/*.deb >>apt.log 2>&1 || give_up "the upgrade fails"
[ "$(grep -c '^--quiet --system restart carmad.service$' systemctl.log)" -eq 1 ] || fail "carmad was not restarted once: $(cat systemctl.log)"
grep -q 'restart.*carmad.socket' systemctl.log && fail "the socket was restarted, which turns clients away"
dpkg-query -W -f '${Version}' carma | grep -qx "$new" || fail "not upgraded: $(dpkg-query -W carma)"
grep -q '^nvml_library' /etc/carma/carma.conf || fail "the upgrade has taken the administrator's settings"
[ "$(grep -c 'READY=1$' told)" -eq 3 ] || fail "carmad was started other than three times: $(cat told)"
[ "$(state_of 1)" = RUNNING ] || fail "after the upgrade job 1 is $(state_of 1)"
as_alice touch /home/alice/go
as_alice carma wait 1 >/dev/null || fail "carma wait after the upgrade"
[ "$(state_of 1)" = COMPLETED ] || fail "job 1 ended $(state_of 1)"
[ "$(sed -n 's/^shepherd //p' /var/lib/carma/runs/1-*/status)" = "$shepherd" ] || fail "job 1 has another shepherd"
[ "$(cat /home/alice/first.log)" = "$(printf 'begins as alice\ntrained\nends')" ] || fail "its log: $(cat /home/alice/first.log)"

# The Python package, as the user.
as_alice python3 -c 'import carma; gpus = carma.gpus(); assert len(gpus) == 4, gpus' || fail "python3-carma"
[ -f /usr/share/carma/python/carma/tiny_step.py ] || fail "carma calibrate does not find its Python modules"

# ---- An older carmad does not touch a newer store ----
systemctl stop carmad.service
mkdir kept
cp -a /var/lib/carma/store.db* kept/
python3 -c 'import sqlite3
database = sqlite3.connect("/var/lib/carma/store.db", isolation_level=None)
form, = database.execute("PRAGMA user_version").fetchone()
database.execute(f"PRAGMA user_version = {form + 1}")'
timeout 60 carmad >refused 2>&1 && fail "carmad takes a store of a newer form"
grep -q 'use the newer carma that made it' refused || fail "a newer store is refused with: $(cat refused)"
rm -f /var/lib/carma/store.db*
cp -a kept/* /var/lib/carma/
systemctl start carmad.service

# ---- Removed while a job runs, and installed again ----
as_alice carma submit --parsable -o second.log -- sh /home/alice/job /home/alice/never >submitted 2>&1 || give_up "submit: $(cat submitted)"
until_says trained cat /home/alice/second.log
job=$(cat submitted)
get remove carma carma-vnode python3-carma || give_up "the packages cannot be removed"
grep -q '1 job(s) go on without carmad' apt.log || fail "removing says nothing of the job that runs"
[ ! -e /usr/bin/carmad ] && [ ! -e /run/carma/carma.sock ] || fail "carmad or its socket is still there"
get install "$tools/$new"/*.deb || give_up "the packages cannot be installed again"
until_says RUNNING carma show "$job"
[ "$(grep -c begins /home/alice/second.log)" -eq 1 ] || fail "the job was started again: $(cat /home/alice/second.log)"

# ---- Purged while it runs ----
get purge carma carma-vnode python3-carma || give_up "the packages cannot be purged"
grep -q 'ending the jobs that still run' apt.log || fail "purging says nothing of the job that runs"
for exe in /proc/[0-9]*/exe; do
    case $(readlink "$exe") in
    */carma*) fail "still running: $(readlink "$exe")" ;;
    esac
done
rm /bin/systemctl
dpkg-divert --local --quiet --rename --remove /bin/systemctl
rmdir /run/systemd/system
files >after
diff before after >left || fail "purging leaves something: $(cat left)"
exit $((failures > 0))
