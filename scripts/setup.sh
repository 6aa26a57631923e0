# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Sourced by the scripts beside it: the numbered steps, and what each of them may need. A step that finds its work
# done says so and does nothing; one that cannot do it ends the script with one line: what is missing, how to give it.

set -euo pipefail

# shellcheck source-path=SCRIPTDIR source=arguments.sh
source "$(dirname "${BASH_SOURCE[0]}")/arguments.sh"
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cache=${XDG_CACHE_HOME:-~/.cache}/acc
default_libtorch_version=2.11.0
libtorch_version=$default_libtorch_version

compile_packages=(g++ cmake ninja-build ccache ca-certificates libcli11-dev libfmt-dev libyaml-cpp-dev
  nlohmann-json3-dev libspdlog-dev 'libboost1.81-dev|libboost-dev' libsodium-dev libxxhash-dev zlib1g-dev libturbojpeg0-dev libpng-dev)
test_packages=(catch2 iproute2 nftables strace python3-yaml)  # iproute2, nftables: nodes in network namespaces; strace: counts of system calls
# shellcheck disable=SC2034  # used by scripts/fuzz
fuzz_packages=(clang-19 libclang-rt-19-dev llvm-19)
# shellcheck disable=SC2034  # used by scripts/test
# What starts jobs, where they meet, who looks at them, and the shells and locales of people. Tests start daemons of their own.
surroundings_packages=(slurm-client slurmctld slurmd munge openmpi-bin mpich etcd-server openssh-server openssh-client
  prometheus zsh fish tcsh locales man-db git)
declare -A daemons=([slurmctld]=slurmctld [slurmd]=slurmd [munge]=munge [etcd-server]=etcd [openssh-server]=ssh
  [prometheus]=prometheus)
daemon_policy=/usr/sbin/policy-rc.d  # packages of Debian ask it whether they may start their daemons

steps=0  # how many the script has: it sets this
step=0
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore

skip_step() {  # TITLE WHY
  step=$((step + 1))
  printf '[%d/%d] %s: %s\n' "$step" "$steps" "$1" "$2"
}

begin_step() {  # TITLE
  step=$((step + 1))
  step_began=$SECONDS
  printf '[%d/%d] %s ...\n' "$step" "$steps" "$1"
}

end_step() { printf '      done in %d s\n' "$((SECONDS - step_began))"; }

# One job per core, but no more than fit into memory: a source that includes torch.h takes 1.2 to 1.4 GB to
# compile, a few together over 2.
jobs() {
  local cores free limit
  cores=$(nproc)
  free=$(awk '/MemAvailable/ {print int($2 / 1024)}' /proc/meminfo)
  limit=$(cat /sys/fs/cgroup/memory.max 2>/dev/null || echo max)
  if [[ $limit != max ]] && ((limit / 1048576 < free)); then free=$((limit / 1048576)); fi
  local fit=$((free / 1700))
  echo $((fit < 1 ? 1 : fit < cores ? fit : cores))
}

make_cache() {
  mkdir -p "$cache" 2>/dev/null || fail "cannot write to $cache; name another folder with XDG_CACHE_HOME"
}

# --- Debian packages -------------------------------------------------------------------------------------------

is_installed() {  # NAME: or one of several, a|b
  local name
  for name in ${1//|/ }; do
    if [[ $(dpkg-query -W -f '${db:Status-Status}' "$name" 2>/dev/null) == installed ]]; then return 0; fi
  done
  return 1
}

choose_package() {  # NAME: the first of a|b that apt can give
  local name
  for name in ${1//|/ }; do
    if [[ -n $(apt-cache madison "$name" 2>/dev/null) ]]; then break; fi
    name=${1%%|*}
  done
  echo "$name"
}

# Without apt or the right to use it, the compiler's tools must be there; CMake downloads missing libraries itself.
skip_packages() {  # WHY
  local tool absent=()
  for tool in c++ cmake ninja; do
    command -v "$tool" >/dev/null || absent+=("$tool")
  done
  if ((${#absent[@]})); then
    fail "missing ${absent[*]}, and $1; install a C++20 compiler, cmake 3.25 and ninja (Debian: as root," \
      "apt-get install --no-install-recommends ${missing[*]%%|*})"
  fi
  skip_step "Debian packages" "$1; CMake downloads the libraries that are missing"
}

# Daemons neither start now nor with the machine, unless they were there before.
install_packages() {  # NAME...
  local name new=()
  for name in "$@"; do
    if [[ -n ${daemons[$name]:-} ]]; then new+=("${daemons[$name]}"); fi
  done
  (
    if ((${#new[@]})) && [[ ! -e $daemon_policy ]]; then
      # shellcheck disable=SC2064  # the words of now
      trap "${as_root[*]} rm '$daemon_policy'" EXIT
      printf '#!/bin/sh\nexit 101\n' | "${as_root[@]}" install -m 755 /dev/stdin "$daemon_policy"
    fi
    "${apt[@]}" install -y --no-install-recommends "$@" >/dev/null
  ) || return
  for name in "${new[@]}"; do "${as_root[@]}" update-rc.d "$name" disable; done
}

need_packages() {  # NAME...
  local name missing=() as_root=() apt=()
  if command -v dpkg-query >/dev/null; then
    for name in "$@"; do
      is_installed "$name" || missing+=("$name")
    done
    if ((${#missing[@]} == 0)); then
      skip_step "Debian packages" "all $# are installed"
      return
    fi
  else
    missing=("$@")
  fi
  if ! command -v apt-get >/dev/null; then
    skip_packages "this system has no apt-get"
    return
  fi
  if ((EUID != 0)); then
    if ! command -v sudo >/dev/null; then
      skip_packages "this user is not root and has no sudo"
      return
    fi
    # Without a terminal nobody can give a password; and not everyone who has the program has the right.
    if [[ -t 0 ]]; then
      as_root=(sudo)
      sudo -v || as_root=()
    elif sudo -n true 2>/dev/null; then
      as_root=(sudo -n)
    fi
    if ((${#as_root[@]} == 0)); then
      skip_packages "this user is not root and may not use sudo"
      return
    fi
  fi
  begin_step "Debian packages (${#missing[@]} of $# are missing)"
  apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=600)
  make_cache
  exec {lock}>"$cache/apt.lock"  # apt-get waits for others while it installs, but not while it reads the lists
  flock "$lock"
  "${apt[@]}" update >/dev/null || true  # a broken third-party source does not matter
  local i
  for i in "${!missing[@]}"; do missing[i]=$(choose_package "${missing[i]}"); done
  install_packages "${missing[@]}" ||
    fail "cannot install Debian packages; do it by hand, as root: apt-get install --no-install-recommends ${missing[*]}"
  exec {lock}>&-
  end_step
}

# --- Downloads into the user's cache ---------------------------------------------------------------------------

# install_once FOLDER MIB COMMAND...: runs COMMAND with a temporary sibling of FOLDER that it fills, and renames that
# at the end; an interrupted download is never taken for a whole one. Concurrent scripts wait for each other.
install_once() (
  folder=$1 need=$2
  shift 2
  make_cache
  exec {lock}>"$folder.lock"
  if ! flock -n "$lock"; then
    printf '      another script is installing it; waiting\n'
    flock "$lock"
  fi
  if [[ -d $folder ]]; then exit; fi
  rm -rf "$folder".part
  free=$(df --output=avail -BM "$cache" | tail -1 | tr -dc 0-9)
  if ((free < need)); then
    fail "$cache has $free MiB free and $need are needed; make room, or name another folder with XDG_CACHE_HOME"
  fi
  trap 'rm -rf "$folder".part' EXIT
  mkdir -p "$folder".part/tmp
  TMPDIR=$folder.part/tmp "$@" "$folder".part
  rm -rf "$folder".part/tmp
  mv "$folder".part "$folder"
)

python_with() {  # MODULE: a python that has it, the active one first
  local python
  for python in python3 python /usr/bin/python3; do
    if "$python" -c "import $1" >/dev/null 2>&1; then
      command -v "$python"
      return
    fi
  done
  return 1
}

# make_environment FOLDER PACKAGE... PART: makes at PART, for install_once, a virtual environment that works at FOLDER.
make_environment() {
  local folder=$1 part=${!#} python packages=("${@:2:$#-2}")
  python=$(python_with ensurepip) || fail "missing Python's venv; as root: apt-get install python3-venv"
  "$python" -m venv "$part" || fail "cannot make a virtual environment with $python"
  "$part/bin/python" -m pip install --no-compile "${packages[@]}" || fail "cannot download ${packages[*]} from the package index"
  # Its programs name the Python that runs them by its path.
  grep -rlIF "$part" "$part/bin" "$part/pyvenv.cfg" | xargs -r sed -i "s|$part|$folder|g"
}

# --- LibTorch --------------------------------------------------------------------------------------------------

is_libtorch() { [[ -f $1/lib/libtorch_cpu.so && -f $1/include/ATen/core/Tensor.h ]]; }

# The torch folder of the active Python, found without importing it; nothing when it is too old for acc.
libtorch_of_python() {
  python3 - 2>/dev/null <<'PYTHON'
import importlib.util, pathlib, re
folder = pathlib.Path(importlib.util.find_spec("torch").submodule_search_locations[0])
version = re.search(r"__version__ = '(\d+)\.(\d+)", (folder / "version.py").read_text())
if (int(version[1]), int(version[2])) >= (2, 9):
    print(folder)
PYTHON
}

# Sets libtorch to the folder to use, or to nothing when it has to be installed; libtorch_origin says which it is.
# Where another version than the default is asked for, nothing but the cache holds it.
find_libtorch() {
  local of_python
  if [[ $libtorch_version != "$default_libtorch_version" ]]; then
    libtorch='' libtorch_origin=''
    if is_libtorch "$cache/libtorch-$libtorch_version/torch"; then
      libtorch=$cache/libtorch-$libtorch_version/torch libtorch_origin="in the cache"
    fi
    return
  fi
  of_python=$(libtorch_of_python || true)
  libtorch='' libtorch_origin=''
  if [[ -n ${LibTorch_ROOT:-} ]]; then
    is_libtorch "$LibTorch_ROOT" || fail "LibTorch_ROOT=$LibTorch_ROOT holds no lib/libtorch_cpu.so with its headers"
    libtorch=$(cd "$LibTorch_ROOT" && pwd) libtorch_origin="of LibTorch_ROOT"
  elif [[ -n $of_python ]] && is_libtorch "$of_python"; then
    libtorch=$of_python libtorch_origin="of the active Python"
  elif is_libtorch "$cache/libtorch-$libtorch_version/torch"; then
    libtorch=$cache/libtorch-$libtorch_version/torch libtorch_origin="in the cache"
  fi
}

# The two libraries that libtorch_cpu.so is linked to, as requirements: the wheel's own for CUDA's run time and CUPTI.
# Through CUDA 12 it names their packages, since then cuda-toolkit, which names those in turn.
libtorch_requirements() {  # FOLDER
  sed -nE -e 's/^Requires-Dist: cuda-toolkit\[[^]]*\] *== *([0-9.]+).*/cuda-toolkit[cudart,cupti]==\1/p' \
    -e 's/^Requires-Dist: (nvidia-cuda-(cupti|runtime)[-a-z0-9]*) *\(?== *([0-9.]+).*/\1==\3/p' \
    "$1"/torch-*.dist-info/METADATA
}

# The least of PyPI's wheel that a CPU program needs.
download_libtorch() {  # FOLDER
  local python install needed
  python=$(python_with pip) || fail "missing pip for LibTorch; as root: apt-get install python3-pip" \
    "(or name a LibTorch of yours: LibTorch_ROOT=<site-packages>/torch)"
  # No Python will load these wheels, so they need not fit the one that is here.
  install=("$python" -m pip install --no-compile --only-binary ':all:' --target "$1" --python-version 3.11
    --implementation cp --platform manylinux_2_28_x86_64 --platform manylinux_2_25_x86_64
    --platform manylinux_2_17_x86_64 --platform manylinux2014_x86_64)
  "${install[@]}" --no-deps "torch==$libtorch_version" ||
    fail "cannot download LibTorch $libtorch_version from the package index;" \
      "name one of yours: LibTorch_ROOT=<site-packages>/torch"
  mapfile -t needed < <(libtorch_requirements "$1")
  "${install[@]}" "${needed[@]}" ||
    fail "cannot download what LibTorch $libtorch_version needs (${needed[*]}) from the package index"
}

need_libtorch() {
  if [[ -n $libtorch ]]; then
    skip_step "LibTorch" "$libtorch ($libtorch_origin)"
    return
  fi
  [[ $(uname -m) == x86_64 ]] || fail "missing LibTorch, which is installed for x86_64 only; install PyTorch, then" \
    "name it: LibTorch_ROOT=<site-packages>/torch"
  begin_step "LibTorch $libtorch_version (0.5 to 0.9 GB to download)"
  install_once "$cache/libtorch-$libtorch_version" 2500 download_libtorch
  libtorch=$cache/libtorch-$libtorch_version/torch
  is_libtorch "$libtorch" || fail "$cache/libtorch-$libtorch_version is damaged; remove it and start again"
  end_step
}

# --- Build -----------------------------------------------------------------------------------------------------

build_folder() {  # PRESET: another LibTorch than the default has a folder of its own
  if [[ $libtorch_version == "$default_libtorch_version" ]]; then echo "build/$1"; else echo "build/torch-$libtorch_version"; fi
}

build() {  # PRESET [TARGET...]
  local preset=$1 number folder
  shift
  number=$(jobs)
  folder=$(build_folder "$preset")
  begin_step "build of preset $preset in $folder ($number jobs)"
  cd "$root"
  cmake --preset "$preset" -B "$folder" --log-level=WARNING -DLibTorch_ROOT="$libtorch" >/dev/null ||
    fail "cmake could not configure the build; what it lacks is named above (libraries on Debian, as root:" \
      "apt-get install --no-install-recommends ${compile_packages[*]%%|*} ${test_packages[*]})"
  NINJA_STATUS='      [%f/%t %es] ' cmake --build "$folder" -j "$number" ${1:+--target "$@"} ||
    fail "the build failed; the compiler's message is above"
  end_step
}
