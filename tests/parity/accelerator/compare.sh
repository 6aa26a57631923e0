#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# compare.sh PROGRAM FOLDER: runs PROGRAM and FOLDER/trace.py on two processes each under Python's torchrun.
set -eu
program=$1 folder=$2
if [ -z "${ACC_PEER_PYTHON:-}" ]; then
  echo "skipped: ACC_PEER_PYTHON names no Python with the peers"
  exit 77
fi
python=$ACC_PEER_PYTHON
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
start="$python -m torch.distributed.run --standalone --nproc-per-node 2"
$start --no-python "$program" >"$out/cpp"
$start "$folder/trace.py" >"$out/python"
"$python" "$folder/compare.py" "$out/cpp" "$out/python"
