# The package carma-slurm beside an administrator's Slurm: sourced after lib.sh.
# shellcheck shell=sh

# make_cluster: a configuration that works without carma, and has an administrator's own files beside it.
make_cluster() {
    cat >/etc/slurm/slurm.conf <<'END'
ClusterName=test
SlurmctldHost=localhost
AuthType=auth/none
CredType=cred/none
GresTypes=gpumem,gpubig
NodeName=localhost Gres=gpumem:160G,gpubig:4
PartitionName=main Nodes=ALL
END
    echo '-- the site has its own' >/etc/slurm/job_submit.lua
    echo '# none yet' >/etc/slurm/gres.conf
    slurm_files >slurm.before
}

# Names, modes, owners, times and contents of all files of Slurm's configuration.
slurm_files() {
    find /etc/slurm -printf '%p %y %m %u %g %T@ %l\n' | sort
    find /etc/slurm -type f -exec sha256sum {} + | sort
}

# expect_slurm_as_before WHEN
expect_slurm_as_before() {
    slurm_files >slurm.after
    diff slurm.before slurm.after >left || fail "$1 changes Slurm's configuration: $(cat left)"
}

expect_slurm_package() {
    library=/usr/lib/$(architecture)/slurm-wlm
    for file in "$library/libcarma_spank.so" /usr/lib/carma/carma-slurm-step /usr/lib/carma/carma-slurm-agent /lib/systemd/system/carma-slurm-agent.service \
        /usr/share/carma/slurm/job_submit.lua /usr/share/carma/slurm/cli_filter.lua /usr/share/carma/slurm/gres.conf \
        /usr/share/carma/slurm/plugstack.conf.d/carma.conf; do
        dpkg -S "$file" 2>&1 | grep -q '^carma-slurm: ' || fail "carma-slurm does not have $file"
    done
    [ -f "$library/job_submit_lua.so" ] || fail "Slurm looks for its plugins elsewhere than in $library"
    dpkg -L carma-slurm | grep '^/etc/' && fail "carma-slurm has files in /etc"
    # Another release of Slurm would refuse the plugin.
    release=$(dpkg-query -W -f '${Version}' slurm-wlm-basic-plugins | cut -d . -f 1,2)
    depends=$(dpkg-query -W -f '${Depends}' carma-slurm)
    case $depends in
    *"slurm-wlm-basic-plugins (>= $release), slurm-wlm-basic-plugins (<< ${release%%.*}."*) ;;
    *) fail "carma-slurm fits other releases of Slurm than $release: $depends" ;;
    esac
    below=$(echo "$depends" | sed -n 's/.*slurm-wlm-basic-plugins (<< \([^)]*\)).*/\1/p')
    dpkg --compare-versions "$release.99" lt "$below" || fail "$release.99 does not fit carma-slurm: $depends"
}

architecture() {
    basename "$(dirname "$(ls -d /usr/lib/*/slurm-wlm)")"
}

# As docs/slurm.md has it: Slurm takes the plugin, and its commands have the options.
use_plugin() {
    sbatch --help | grep -q -- --carma-mem && fail "sbatch has carma's options before its configuration says so"
    cp /usr/share/carma/slurm/plugstack.conf.d/carma.conf /etc/slurm/plugstack.conf.d/
    sbatch --help >help 2>&1 || fail "sbatch: $(cat help)"
    grep -q -- --carma-mem help || fail "sbatch has no --carma-mem: $(cat help)"
    slurm_files >slurm.before
}
