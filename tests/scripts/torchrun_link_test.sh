#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The wheel's acc-torchrun starts the acc beside it by torchrun's rules, also where a link leads to it.
# shellcheck disable=SC2016  # code for another shell
set -eu
script=$(cd "$(dirname "$0")/../../scripts/package" && pwd)/acc-torchrun
folder=$(readlink -f "$(mktemp -d)")
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/wheel" "$folder/bin"
cp "$script" "$folder/wheel"
printf '#!/bin/sh\nprintf "%%s\\n" "$0" "$@"\n' >"$folder/wheel/acc"
chmod +x "$folder/wheel/acc"
ln -s ../wheel/acc-torchrun "$folder/bin/torchrun"
for program in "$folder/wheel/acc-torchrun" "$folder/bin/torchrun"; do
  started=$("$program" --standalone 'my script.py')
  if [ "$started" != "$(printf '%s\n' "$folder/wheel/acc" torchrun --standalone 'my script.py')" ]; then
    echo "$program started: $started"
    exit 1
  fi
done
