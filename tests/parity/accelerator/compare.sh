#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# compare.sh PROGRAM FOLDER: runs PROGRAM and FOLDER/trace.py on two processes each under Python's torchrun.
set -eu
program=$1 folder=$2
if ! "${ACC_PEER_PYTHON:-python3}" -c "import accelerate" 2>/dev/null; then
  echo "ACC_PEER_PYTHON names no python with accelerate: skipped"
  exit 77
fi
python=${ACC_PEER_PYTHON:-python3}
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
start="$python -m torch.distributed.run --standalone --nproc-per-node 2"
$start --no-python "$program" >"$out/cpp"
$start "$folder/trace.py" >"$out/python"
"$python" "$folder/compare.py" "$out/cpp" "$out/python"
