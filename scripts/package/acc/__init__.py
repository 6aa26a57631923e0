# SPDX-License-Identifier: Apache-2.0
"""The launcher `acc` as a package: `python -m acc` is the program of this environment."""
