# SPDX-License-Identifier: Apache-2.0
"""Runs until a signal ends it."""
import signal

import dump  # noqa: F401

signal.pause()
