#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# other_torch.sh PROGRAM VERSION: PROGRAM was built for LibTorch VERSION; with the one of ACC_OTHER_PEER_PYTHON on the
# library path it must end with one line that names both. Exits 77 when there is no other LibTorch.
set -euo pipefail
program=$1 version=$2
if [[ -z ${ACC_OTHER_PEER_PYTHON:-} ]]; then
  echo "skipped: ACC_OTHER_PEER_PYTHON names no Python with another torch" && exit 77
fi
torch=$("$ACC_OTHER_PEER_PYTHON" -c 'import importlib.util as u; print(u.find_spec("torch").submodule_search_locations[0])')
other=$(sed -nE "s/^__version__ = '([0-9.]+).*/\1/p" "$torch/version.py")
if [[ $other == "$version" ]]; then echo "skipped: ACC_OTHER_PEER_PYTHON names no Python with another torch" && exit 77; fi

status=0
said=$(LD_LIBRARY_PATH=$torch/lib "$program" 2>&1) || status=$?
echo "$said"
# A program has copy relocations of variables of LibTorch. If the size of one differs in the other version, the dynamic
# linker prints a warning before the program can report the error.
said=$(sed "/: Symbol .* has different size in shared object, consider re-linking$/d" <<<"$said")
if [[ $status == 0 || $said == *$'\n'* || $said != *"was built for LibTorch $version but runs with $other"* ]]; then
  echo "expected one line that names $version and $other, and failure (status $status)"
  exit 1
fi
