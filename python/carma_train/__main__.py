"""python3 -m carma_train study ...: the study of GPUMemNet's data (study.py). The other programs: README.md."""

import sys

if sys.argv[1:2] != ["study"]:
    sys.exit("usage: python3 -m carma_train study --data DIR --output FILE")
try:
    from . import study
except ImportError as error:
    sys.exit(f"carma_train: {error}: python3 -m pip install -r python/requirements-replay.txt")
sys.exit(study.main(sys.argv[2:]))
