"""What is wrong with device code."""

from __future__ import annotations


class DeviceCodeError(AssertionError):
    """A kernel does what no kernel may, and what a device might do without a word."""
