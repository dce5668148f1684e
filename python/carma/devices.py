"""How many GPUs a script is told that there are."""

import os


def device_count():
    """As many as the job has, where a launcher or carmad says."""
    counts = [os.environ.get(name) for name in ("LOCAL_WORLD_SIZE", "WORLD_SIZE", "CARMA_AUTO_CAPTURE_GPUS")]
    return max(1, int(next(filter(None, counts), 1)))
