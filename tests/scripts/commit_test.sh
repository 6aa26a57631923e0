#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The commit that `acc --version` names: that of a clone, that of an archive which git made of it, "unknown" for bare
# files, also inside of another repository. The repository that `acc new` names: the origin, if it is an address for
# everybody.
set -euo pipefail
command -v git >/dev/null || { echo "skipped: no git" && exit 77; }

scripts=$(realpath "$(dirname "${BASH_SOURCE[0]}")/../../scripts/cmake")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null
git() { command git -c user.name=test -c user.email=test@localhost -c init.defaultBranch=main "$@"; }

commit_of() {  # SOURCE
  cmake -DSOURCE="$1" -DHEADER="$work/commit.hpp" -P "$1/scripts/cmake/commit.cmake"
  sed -n 's/^#define ACC_COMMIT "\(.*\)"$/\1/p' "$work/commit.hpp"
}

expect() {  # WHAT SOURCE COMMIT
  local commit
  commit=$(commit_of "$2")
  if [[ $commit != "$3" ]]; then
    echo "$1: '$commit' instead of '$3'" >&2
    exit 1
  fi
}

copy() {  # FOLDER
  mkdir -p "$1/scripts/cmake"
  cp "$scripts"/{commit.cmake,commit.txt,.gitattributes} "$1/scripts/cmake"
}

copy "$work/clone"
git -C "$work/clone" init --quiet
git -C "$work/clone" add .
git -C "$work/clone" commit --quiet -m first
head=$(git -C "$work/clone" rev-parse HEAD)
mkdir "$work/archive"
git -C "$work/clone" archive HEAD | tar -x -C "$work/archive"
copy "$work/files"
mkdir "$work/other"
git -C "$work/other" init --quiet
git -C "$work/other" commit --quiet --allow-empty -m other
copy "$work/other/acc"

expect "a clone" "$work/clone" "$head"
expect "an archive" "$work/archive" "$head"
expect "files" "$work/files" unknown
expect "files in another repository" "$work/other/acc" unknown

expect_repository() {  # WHAT ORIGIN REPOSITORY
  git -C "$work/clone" config remote.origin.url "$2"
  commit_of "$work/clone" >/dev/null
  if ! grep -qxF "#define ACC_REPOSITORY \"$3\"" "$work/commit.hpp"; then
    echo "$1: not '$3' in: $(<"$work/commit.hpp")" >&2
    exit 1
  fi
}

expect_repository "an address" https://example.org/acc.git https://example.org/acc.git
expect_repository "an address with a password" https://me:secret@example.org/acc.git ""
expect_repository "a folder" /home/me/acc ""
