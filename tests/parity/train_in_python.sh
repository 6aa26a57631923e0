#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# train_in_python.sh LAUNCHER PROGRAM OUT PROCESSES SETUP...: PROGRAM trains each set-up in Python in one job, and writes its
# results to the folder OUT.
set -eu
launcher=$1 program=$2 out=$3 processes=$4
shift 4
if [ -z "${ACC_PEER_PYTHON:-}" ]; then
  echo "skipped: ACC_PEER_PYTHON names no Python with the peers"
  exit 77
fi
mkdir -p "$out"
export ACCELERATE_USE_CPU=true
# The C++ library sets this itself where the CPU needs it; Python's torch does not.
export ONEDNN_MAX_CPU_ISA="${ONEDNN_MAX_CPU_ISA:-AVX512_CORE_FP16}"
export PYTHON_EXEC="$ACC_PEER_PYTHON"
exec "$launcher" run --standalone --preload torch,torch._dynamo --nproc-per-node "$processes" "$program" "$out" "$@"
