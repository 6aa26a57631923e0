#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# compare.sh LAUNCHER PROGRAM PYTHON SETUP: runs PROGRAM on two processes, or as many as SETUP says, and compares with what
# train.py wrote to PYTHON.
set -eu
launcher=$1 program=$2 python=$3 setup=$4
if [ -z "${ACC_PEER_PYTHON:-}" ]; then
  echo "skipped: ACC_PEER_PYTHON names no Python with the peers"
  exit 77
fi
export ACCELERATE_USE_CPU=true ACC_SCRIPTS="$python"
case $setup in
  *alone*) processes=1 ;;
  # Shared memory adds the gradients of three in another order than Gloo.
  *three*) processes=3 && export ACC_CPU_BACKEND=gloo ;;
  *) processes=2 ;;
esac
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
"$launcher" run --standalone --no-python --nproc-per-node $processes "$program" "$out" "$setup"
"$ACC_PEER_PYTHON" "$(dirname "$0")/compare.py" "$out/$setup" "$python/$setup" "$setup"
