# SPDX-License-Identifier: Apache-2.0
"""Where acc's headers and libraries are: layout.json beside this package, written by the build or by its installation."""

import dataclasses
import json
import pathlib

COMPILER_OPTIONS = "-O2 -std=c++20"


@dataclasses.dataclass(frozen=True)
class Layout:
    folder: pathlib.Path  # of layout.json
    include: tuple  # folders with acc's headers
    libraries: tuple  # libacc.so and what notebooks need beside it
    libtorch: pathlib.Path
    libtorch_version: str  # with which acc was built

    @staticmethod
    def of_this_package():
        folder = pathlib.Path(__file__).resolve().parents[1]
        fields = json.loads((folder / "layout.json").read_text())
        return Layout(
            folder=folder,
            include=tuple((folder / path).resolve() for path in fields["include"]),
            libraries=tuple((folder / path).resolve() for path in fields["libraries"]),
            libtorch=(folder / fields["libtorch"]).resolve(),
            libtorch_version=fields["libtorch_version"],
        )

    @property
    def include_folders(self):
        include = self.libtorch / "include"
        return (*self.include, include, include / "torch/csrc/api/include")

    @property
    def headers(self):
        """What is precompiled."""
        return self.folder / "precompiled.hpp"
