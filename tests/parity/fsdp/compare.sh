#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# compare.sh LAUNCHER PROGRAM FOLDER SETUP PROCESSES: runs PROGRAM and FOLDER/train.py on as many processes each.
set -eu
launcher=$1 program=$2 folder=$3 setup=$4 processes=$5
if [ -z "${ACC_PEER_PYTHON:-}" ]; then
  echo "ACC_PEER_PYTHON names no python with torch: skipped"
  exit 77
fi
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
# The C++ library sets this itself where the CPU needs it; Python's torch does not.
export ONEDNN_MAX_CPU_ISA="${ONEDNN_MAX_CPU_ISA:-AVX512_CORE_FP16}"
"$launcher" run --standalone --no-python --nproc-per-node "$processes" "$program" "$setup" "$out/cpp"
"$launcher" run --standalone --no-python --nproc-per-node "$processes" "$ACC_PEER_PYTHON" "$folder/train.py" "$setup" \
  "$out/python"
"$ACC_PEER_PYTHON" "$folder/compare.py" "$out/cpp" "$out/python" "$setup" "$processes"
