#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# cuda_load.sh PROGRAM FOLDER CASE: what tests/workers/cuda_report prints where FOLDER has a libcuda.so.1 without a
# driver behind it, so that the result does not depend on this machine's devices. Exits 77 when the case cannot be
# tested here.
set -euo pipefail
program=$1 fake=$2 case=$3

report() {  # VARIABLE=VALUE...
  said=$(env -u CUDA_VISIBLE_DEVICES -u ACCELERATE_USE_CPU LD_LIBRARY_PATH="$fake" "$@" "$program" 2>&1) || {
    echo "the program failed: $said"
    exit 1
  }
  echo "$said"
}

expect() {  # PATTERN...
  local pattern
  for pattern in "$@"; do
    grep -qE "^$pattern\$" <<<"$said" || { echo "no line '$pattern'" && exit 1; }
  done
}

trains_on_cpu=('device: cpu' 'gradient: 6')

case $case in
  not_asked_for)
    report ACCELERATE_USE_CPU=1
    expect 'plugin: ' 'devices: 0 ' "${trains_on_cpu[@]}"
    report CUDA_VISIBLE_DEVICES=
    expect 'plugin: ' 'devices: 0 ' "${trains_on_cpu[@]}"
    report ACC_LOAD_CUDA=0
    expect 'plugin: ' 'devices: 0 ' "${trains_on_cpu[@]}"
    if grep -q 'no CUDA device' <<<"$said"; then echo "warns of what nobody asked for" && exit 1; fi
    ;;
  driver)
    # With a complete LibTorch the plug-in is loaded, with the minimal one it cannot be, and in a build without CUDA
    # there is none.
    report
    expect "plugin: (loaded|acc was built without CUDA .*|LibTorch's CUDA libraries cannot be loaded: .*)" \
      'devices: 0 .+' '.*no CUDA device: .+; training runs on the CPU.*' "${trains_on_cpu[@]}"
    ;;
  whole_libtorch)
    [[ -f $(dirname "$program")/../lib/libacc_cuda.so ]] || { echo "skipped: built without the CUDA plug-in" && exit 77; }
    if [[ -z ${ACC_PEER_PYTHON:-} ]]; then echo "skipped: ACC_PEER_PYTHON names no Python with the peers" && exit 77; fi
    torch=$("$ACC_PEER_PYTHON" -c 'import importlib.util as u; print(u.find_spec("torch").submodule_search_locations[0])')
    # A version other than the compiled one ends the program before it reports anything about CUDA.
    if ! LD_LIBRARY_PATH=$torch/lib ACCELERATE_USE_CPU=1 "$program" >/dev/null 2>&1; then
      echo "skipped: the torch of ACC_PEER_PYTHON is not the one that acc was built with" && exit 77
    fi
    report LD_LIBRARY_PATH="$torch/lib:$fake"
    expect 'plugin: loaded' 'devices: 0 .+' 'nccl: .*no GPUs found.*' \
      '.*no CUDA device: .+; training runs on the CPU.*' "${trains_on_cpu[@]}"
    ;;
esac
