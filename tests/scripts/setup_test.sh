#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Tests scripts/setup.sh and the arguments of scripts with stubs for the system's tools: installs and downloads nothing.
# shellcheck disable=SC2016,SC2317  # code for the shell under test; conditions are called by name
set -euo pipefail

scripts=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../scripts" && pwd)
setup=$scripts/setup.sh
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failures=0

stub() {  # NAME BODY: a program of that name, first on the path of shell()
  mkdir -p "$scratch/bin"
  rm -f "$scratch/bin/$1"  # never write through the link of hide_all()
  printf '#!/bin/bash\n%s\n' "$2" >"$scratch/bin/$1"
  chmod +x "$scratch/bin/$1"
}

hide_all() {  # leaves a path without compilers and package tools
  rm -rf "${scratch:?}/bin" "$scratch/cache"
  mkdir -p "$scratch/bin"
  local tool
  for tool in awk bash cat df dirname env flock grep mkdir mv nproc printf pwd rm sed sleep tail tr uname xargs; do
    ln -s "$(command -v "$tool")" "$scratch/bin/$tool"
  done
}

shell() {  # CODE: runs it after sourcing setup.sh; sets said and status
  status=0
  said=$(env -i HOME="$scratch" PATH="$scratch/bin" XDG_CACHE_HOME="$scratch/cache" \
    /bin/bash -c "source '$setup'; steps=1; $1" 2>&1) || status=$?
}

promise() {  # WHAT CONDITION...
  local what=$1
  shift
  if "$@"; then
    echo "ok: $what"
  else
    echo "FAILED: $what (status $status, said: $said)"
    failures=$((failures + 1))
  fi
}

says() { [[ $said == *"$1"* ]]; }
fails_saying() { [[ $status == 1 && $said == "error: "* && $said == *"$1"* && $said != *$'\n'* ]]; }
called() { [[ -f $scratch/calls ]] && grep -qF -- "$1" "$scratch/calls"; }

echo 'packages'
hide_all
stub dpkg-query 'echo -n installed'
stub apt-get "echo \"\$*\" >>$scratch/calls"
shell 'need_packages g++ "a|b"'
promise 'says so when all packages are installed' says '[1/1] Debian packages: all 2 are installed'
promise 'and leaves apt alone' test ! -f "$scratch/calls"

stub dpkg-query 'if [[ $4 == b || $4 == g++ ]]; then echo -n installed; fi'
shell 'need_packages g++ "a|b"'
promise 'takes any of the alternatives' says 'all 2 are installed'

stub dpkg-query 'exit 1'
stub apt-cache 'if [[ $2 != a ]]; then echo "$2 | 1"; fi'
stub sudo '[[ $1 == -n ]] && shift; exec "$@"'
shell 'need_packages g++ "a|b"'
promise 'installs what is missing, of the alternatives the one that apt has' \
  called 'install -y --no-install-recommends g++ b'
promise 'and says how many' says '(2 of 2 are missing)'

if ((EUID != 0)) || unshare --user true 2>/dev/null; then
  as_user() {  # CODE: shell() as a user who is not root
    if ((EUID != 0)); then shell "$1"; else shell "exec unshare --user /bin/bash -c 'source $setup; steps=1; $1'"; fi
  }
  ln -s "$(command -v unshare)" "$scratch/bin/unshare"
  for tool in c++ cmake ninja; do stub "$tool" ''; done
  stub sudo 'exit 1'
  as_user 'need_packages g++ a'
  promise 'who may not use sudo goes on without it' says 'this user is not root and may not use sudo; CMake downloads'
  promise 'with success' test "$status" = 0
fi

rm "$scratch/calls"
stub install "exec $(command -v install) \"\$@\""
stub update-rc.d "echo \"\$*\" >>$scratch/calls"
stub apt-get "if [[ \$* == *install* ]]; then $scratch/policy; echo \"policy says \$?\" >>$scratch/calls; fi"
shell "daemon_policy=$scratch/policy; need_packages slurmd g++"
promise 'daemons may not start while they are installed' called 'policy says 101'
promise 'nor will they with the machine' called 'slurmd disable'
promise 'and the rule is gone afterwards' test ! -e "$scratch/policy"
shell "daemon_policy=$scratch/policy; need_packages g++"
promise 'other packages need no such rule' called 'policy says 127'
printf '#!/bin/sh\nexit 0\n' >"$scratch/policy"
chmod +x "$scratch/policy"
shell "daemon_policy=$scratch/policy; need_packages slurmd"
promise 'a rule of the machine stays as it is' test "$(tail -1 "$scratch/policy")" = 'exit 0'

stub apt-get 'exit 100'
shell 'need_packages g++ "a|b"'
promise 'names the command to run by hand when apt fails' \
  says 'as root: apt-get install --no-install-recommends g++ b'
promise 'and fails' test "$status" = 1

hide_all
shell 'need_packages g++ cmake'
promise 'without apt, one line names the missing tools' fails_saying 'missing c++ cmake ninja, and this system has no apt-get'

for tool in c++ cmake ninja; do stub "$tool" ''; done
shell 'need_packages g++ cmake libx-dev'
promise 'without apt but with the tools, libraries are left to CMake' says 'CMake downloads the libraries that are missing'
promise 'and goes on' test "$status" = 0

echo 'downloads'
hide_all
fill='fill() { mkdir -p "$1"; echo whole >"$1/file"; echo once >>"$cache/../count"; }; '
shell 'break_off() { mkdir -p "$1"; echo half >"$1/file"; fail "the line broke"; }; install_once "$cache/thing" 1 break_off'
promise 'an interrupted download fails' test "$status" = 1
promise 'and leaves nothing that looks whole' test ! -e "$scratch/cache/acc/thing"
promise 'nor a part of it' test ! -e "$scratch/cache/acc/thing.part"

shell "$fill"'install_once "$cache/thing" 1 fill'
promise 'the next one succeeds' test "$(cat "$scratch/cache/acc/thing/file")" = whole

rm -rf "$scratch/cache"
# Both are started while the lock is held, so both have to wait for it.
shell "$fill"'mkdir -p "$cache"; exec {held}>"$cache/thing.lock"; flock "$held"
  (exec {held}>&-; install_once "$cache/thing" 1 fill) & (exec {held}>&-; install_once "$cache/thing" 1 fill) &
  exec {held}>&-; wait'
promise 'two at a time install once' test "$(cat "$scratch/cache/count")" = once

shell 'install_once "$cache/other" 999999999999 true'
promise 'too little room is said before the download' fails_saying 'MiB free and 999999999999 are needed'

echo 'LibTorch'
hide_all
shell 'LibTorch_ROOT=/nowhere; find_libtorch'
promise 'a LibTorch_ROOT without LibTorch is an error' fails_saying 'LibTorch_ROOT=/nowhere holds no lib/libtorch_cpu.so'

mkdir -p "$scratch/torch/lib" "$scratch/torch/include/ATen/core"
touch "$scratch/torch/lib/libtorch_cpu.so" "$scratch/torch/include/ATen/core/Tensor.h"
shell "LibTorch_ROOT=$scratch/torch; find_libtorch; need_libtorch"
promise 'one with it is used' says "[1/1] LibTorch: $scratch/torch (of LibTorch_ROOT)"

shell "cd $scratch; LibTorch_ROOT=torch; find_libtorch; need_libtorch"
promise 'also by a path from the folder where the script was started' says "[1/1] LibTorch: $scratch/torch (of LibTorch_ROOT)"

mkdir -p "$scratch/cache/acc/libtorch-2.11.0"
mv "$scratch/torch" "$scratch/cache/acc/libtorch-2.11.0/torch"
shell 'find_libtorch; need_libtorch'
promise 'the cache is used when nothing else is there' says 'libtorch-2.11.0/torch (in the cache)'

shell 'libtorch_version=2.15.0; find_libtorch; echo "it is: $libtorch."'
promise 'another version than the default is not mistaken for it' says 'it is: .'
mkdir -p "$scratch/cache/acc/libtorch-2.15.0"
cp -r "$scratch/cache/acc/libtorch-2.11.0/torch" "$scratch/cache/acc/libtorch-2.15.0/torch"
shell 'LibTorch_ROOT=/of/the/default; libtorch_version=2.15.0; find_libtorch; need_libtorch'
promise 'and has a folder of its own in the cache' says 'libtorch-2.15.0/torch (in the cache)'
shell 'build_folder full; libtorch_version=2.15.0; build_folder full'
promise 'and a build folder of its own' test "$said" = $'build/full\nbuild/torch-2.15.0'

requirements_of() {  # TEXT OF METADATA
  mkdir -p "$scratch/wheel/torch-9.dist-info"
  printf '%s\n' "$@" >"$scratch/wheel/torch-9.dist-info/METADATA"
  shell "libtorch_requirements $scratch/wheel"
}
requirements_of 'Requires-Dist: filelock' \
  'Requires-Dist: nvidia-cuda-nvrtc-cu12==12.8.93; platform_system == "Linux"' \
  'Requires-Dist: nvidia-cuda-runtime-cu12==12.8.90; platform_system == "Linux" and platform_machine == "x86_64"' \
  'Requires-Dist: nvidia-cuda-cupti-cu12==12.8.90; platform_system == "Linux" and platform_machine == "x86_64"'
promise 'of what 2.9 needs, the two libraries of the CPU half are taken' \
  test "$said" = $'nvidia-cuda-runtime-cu12==12.8.90\nnvidia-cuda-cupti-cu12==12.8.90'
requirements_of 'Requires-Dist: cuda-toolkit[cublas,cudart,cupti,nvtx]==13.0.2; platform_system == "Linux"' \
  'Requires-Dist: cuda-bindings<14,>=13.0.3; platform_system == "Linux"'
promise 'and of what later ones need, too' test "$said" = 'cuda-toolkit[cudart,cupti]==13.0.2'

echo 'arguments'
hide_all  # a script that did not end at its arguments finds nothing to work with
script() {  # NAME ARGUMENT...: runs it; sets said and status
  status=0
  said=$(env -i HOME="$scratch" PATH="$scratch/bin" XDG_CACHE_HOME="$scratch/cache" /bin/bash "$scripts/$1" "${@:2}" 2>&1) ||
    status=$?
}
says_alone() { [[ $status == 0 && $said == "$1"* ]]; }
for name in $(cd "$scripts" && grep -slE '^source .*/(setup|arguments)\.sh"$' -- * package/* | grep -v '\.sh$'); do
  script "$name" --help
  promise "$name --help prints the comment on top of it" says_alone "$(sed -n '3s/^# //p' "$scripts/$name")"
done
for name in check docs format gpu peers quickstart simulate stress package/try; do
  script "$name" --chekc
  promise "$name refuses what it does not know" fails_saying "unknown argument '--chekc'"
done
script format --check again
promise 'and what is too much' fails_saying "unknown argument 'again'"

exit "$((failures > 0))"
