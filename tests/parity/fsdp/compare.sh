#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# compare.sh LAUNCHER PROGRAM PYTHON SETUP PROCESSES: runs PROGRAM, and compares with what train.py wrote to PYTHON.
set -eu
launcher=$1 program=$2 python=$3 setup=$4 processes=$5
if [ -z "${ACC_PEER_PYTHON:-}" ]; then
  echo "skipped: ACC_PEER_PYTHON names no Python with the peers"
  exit 77
fi
export ACCELERATE_USE_CPU=true
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
"$launcher" run --standalone --no-python --nproc-per-node "$processes" "$program" "$out" "$setup"
"$ACC_PEER_PYTHON" "$(dirname "$0")/compare.py" "$out/${setup}_$processes" "$python/${setup}_$processes" "$setup" "$processes"
