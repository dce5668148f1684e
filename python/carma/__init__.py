"""What a training step allocates on a GPU, without one: carma.capture(), and `python -m carma.capture SCRIPT`."""

from carma.errors import CaptureError

__all__ = ["CaptureError", "capture"]


def capture(*args, **kwargs):
    from carma import step

    return step.capture(*args, **kwargs)


capture.__doc__ = "Records two training steps of a model into a file: see carma.step.capture()."
