# SPDX-License-Identifier: Apache-2.0
"""The same as a module."""
import dump  # noqa: F401
