"""The one exception that a capture ends with when it cannot be faithful."""


class CaptureError(Exception):
    """One line: what cannot be recorded, and what to do about it."""
