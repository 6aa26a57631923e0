#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# mixed_ranks.sh LAUNCHER PROGRAM FOLDER: a job whose ranks are, in turns, PROGRAM's case [.mixed] and FOLDER/mixed_ranks.py.
set -eu
launcher=$1 program=$2 folder=$3
if [ -z "${ACC_PEER_PYTHON:-}" ]; then
  echo "skipped: ACC_PEER_PYTHON names no Python with the peers"
  exit 77
fi
# shellcheck disable=SC2016
for first in 0 1; do
  "$launcher" run --standalone --no-python --nproc-per-node 3 sh -c '
    if [ $(((RANK + $1) % 2)) -eq 0 ]; then exec "$2" -w NoTests "[.mixed]"; else exec "$3" "$4"; fi
  ' sh "$first" "$program" "$ACC_PEER_PYTHON" "$folder/mixed_ranks.py"
done
