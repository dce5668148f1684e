# Sourced first: the test runs in a mount namespace of its own, so that no other test sees what it mounts.
if [ "${CARMA_TEST_MOUNTS-}" != own ]; then
    unshare -m --propagation private true 2>/dev/null || {
        echo "no mount namespace for this user: skipped"
        exit 77
    }
    CARMA_TEST_MOUNTS=own exec unshare -m --propagation private sh "$0" "$@"
fi
