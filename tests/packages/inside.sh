#!/bin/sh
# Usage: inside.sh OLD NEW, in a fresh root tree: the packages in /opt/test/OLD are installed, upgraded to those in
# /opt/test/NEW while a job runs, removed, installed again, and purged. Run by test_packages.sh.
old=$1
new=$2
# shellcheck source=lib.sh
. /opt/test/lib.sh
# shellcheck source=job.sh
. /opt/test/job.sh
# shellcheck source=slurm.sh
. /opt/test/slurm.sh

get() {
    apt-get -q -y -o DPkg::Use-Pty=0 "$@" >>apt.log 2>&1
}

# All files of packages, with the directories; neither apt's and dpkg's own notes about them, nor this test's files.
files() {
    find / -xdev \( -path /proc -o -path /sys -o -path /dev -o -path "$tools" -o -path /home/alice -o -path "$NODE" \
        -o -path /tmp -o -path /var/lib/dpkg -o -path /var/lib/apt -o -path /var/cache -o -path /var/log -o -path /root \) \
        -prune -o -print | sort
}

# ---- A fresh install ----
# Everything that the packages need comes first, so that the lists of files tell of the packages alone.
needed=$(apt-get -s install "$tools/$old"/*.deb 2>apt.log | sed -n 's/^Inst \([^ ]*\) .*/\1/p' | grep -vE '^(carma|carma-vnode|python3-carma|carma-slurm)$')
[ -n "$needed" ] || give_up "apt does not find the packages' dependencies"
printf '#!/bin/sh\nexit 101\n' >/usr/sbin/policy-rc.d # nothing of theirs is started
chmod 755 /usr/sbin/policy-rc.d
# shellcheck disable=SC2086 # a list
get install --no-install-recommends $needed slurm-client || give_up "apt cannot install the packages' dependencies"
rm /usr/sbin/policy-rc.d
useradd --create-home alice
make_cluster
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
for unit in carmad.service carma-jobs.service carma-notify.service carmad.socket carma-slurm-agent.service; do
    systemd-analyze verify --man=no "/lib/systemd/system/$unit" >verify.log 2>&1 || fail "$unit: $(cat verify.log)"
    [ ! -s verify.log ] || fail "$unit: $(cat verify.log)"
done
as_alice carma queue >/dev/null || fail "an ordinary user cannot ask a fresh installation"

grep -q ' start.*carma-slurm-agent' systemctl.log && fail "the agent is started without an administrator's word"
expect_slurm_package
expect_slurm_as_before "installing carma-slurm"
use_plugin

# ---- Used, and upgraded under a running job ----
make_node
echo "export CARMA_VNODE=$NODE" >environment
systemctl stop carmad.service
systemctl start carmad.service
until_says 'A100' carma gpus

submit_job first.log go
shepherd=$(shepherd_of 1)
dpkg -i "$tools/$new"/*.deb >>apt.log 2>&1 || give_up "the upgrade fails"
[ "$(grep -c '^--quiet --system restart carmad.service$' systemctl.log)" -eq 1 ] || fail "carmad was not restarted once: $(cat systemctl.log)"
grep -q 'restart.*carmad.socket' systemctl.log && fail "the socket was restarted, which turns clients away"
[ "$(grep -c 'restart carma-slurm-agent.service$' systemctl.log)" -eq 1 ] || fail "the agent that ran was not restarted once: $(cat systemctl.log)"
expect_slurm_as_before "upgrading carma-slurm"
dpkg-query -W -f '${Version}' carma | grep -qx "$new" || fail "not upgraded: $(dpkg-query -W carma)"
grep -q '^nvml_library' /etc/carma/carma.conf || fail "the upgrade has taken the administrator's settings"
[ "$(grep -c 'READY=1$' told)" -eq 3 ] || fail "carmad was started other than three times: $(cat told)"
expect_running 1
finish_job 1 first.log go "$shepherd"

# The Python package, as the user.
as_alice python3 -c 'import carma; gpus = carma.gpus(); assert len(gpus) == 4, gpus' || fail "python3-carma"
[ -f /usr/share/carma/python/carma/tiny_step.py ] || fail "carma calibrate does not find its Python modules"
[ -f /usr/share/carma/python/carma_auto/sitecustomize.py ] || fail "carmad does not find what follows a command"

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
submit_job second.log never
mkdir -p /var/lib/carma-slurm
touch /var/lib/carma-slurm/order
# A shepherd that waits for its job, as of a user's own carmad, is no job.
python3 -c 'import os, socket, subprocess
there, here = socket.socketpair()
os.dup2(there.fileno(), 3)
subprocess.run(["/usr/lib/carma/carma-shepherd"], pass_fds=[3])' &
waiting=$!
until_says carma-shepherd sh -c 'grep -h "(carma-shepherd) . $1 " /proc/[0-9]*/stat' sh "$waiting"
get remove carma carma-vnode python3-carma carma-slurm || give_up "the packages cannot be removed"
grep -q '1 job(s) go on without carmad' apt.log || fail "removing says nothing of the job that runs"
kill "$waiting"
[ ! -e /usr/bin/carmad ] && [ ! -e /run/carma/carma.sock ] || fail "carmad or its socket is still there"
expect_slurm_as_before "removing carma-slurm"
grep -q 'stop carma-slurm-agent.service$' systemctl.log || fail "the agent was not stopped: $(cat systemctl.log)"
[ -f /var/lib/carma-slurm/order ] || fail "removing loses an order that was not carried out"
get install "$tools/$new"/*.deb || give_up "the packages cannot be installed again"
until_says RUNNING carma show 2
[ "$(grep -c begins /home/alice/second.log)" -eq 1 ] || fail "the job was started again: $(cat /home/alice/second.log)"

# ---- Purged while it runs ----
get purge carma carma-vnode python3-carma carma-slurm || give_up "the packages cannot be purged"
grep -q 'ending the jobs that still run' apt.log || fail "purging says nothing of the job that runs"
expect_nothing_runs
expect_slurm_as_before "purging carma-slurm"
rm /etc/slurm/plugstack.conf.d/carma.conf # as docs/slurm.md says: the administrator's own doing
rm /bin/systemctl
dpkg-divert --local --quiet --rename --remove /bin/systemctl
rmdir /run/systemd/system
files >after
diff before after >left || fail "purging leaves something: $(cat left)"
exit $((failures > 0))
