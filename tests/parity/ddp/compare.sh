#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# compare.sh PROGRAM FOLDER SETUP: runs PROGRAM and FOLDER/train.py on two processes each under Python's torchrun.
set -eu
program=$1 folder=$2 setup=$3
if [ -z "${ACC_PEER_PYTHON:-}" ]; then
  echo "ACC_PEER_PYTHON names no python with torch: skipped"
  exit 77
fi
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
start="$ACC_PEER_PYTHON -m torch.distributed.run --standalone --nproc-per-node 2"
# The C++ library sets this itself where the CPU needs it; Python's torch does not.
export ONEDNN_MAX_CPU_ISA="${ONEDNN_MAX_CPU_ISA:-AVX512_CORE_FP16}"
$start --no-python "$program" "$setup" >"$out/cpp"
$start "$folder/train.py" "$setup" >"$out/python"
"$ACC_PEER_PYTHON" "$folder/compare.py" "$out/cpp" "$out/python" "$setup"
