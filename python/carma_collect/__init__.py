"""Measures GPU memory and SM activity of random networks' training, to extend carma's data sets.

Run `python3 -m carma_collect --help`; it needs PyTorch, nvidia-ml-py and a CUDA GPU that nothing else uses."""
