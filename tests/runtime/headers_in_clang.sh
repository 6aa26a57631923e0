#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The public headers compile in Clang, too: in clang++ where there is one, else in cling, which notebooks use.
#   headers_in_clang.sh LIB FLAGS: the folder of acc/*.hpp, and a file with the compiler's flags, one a line
set -euo pipefail

source=$(for header in "$1"/acc/*.hpp; do echo "#include \"acc/${header##*/}\""; done)
[[ $source == *acc/accelerator.hpp* ]] || { echo "no headers in $1/acc" && exit 1; }

if command -v clang++ >/dev/null; then
  # The warnings of others' headers stay out; the system's own folder keeps its place.
  mapfile -t flags < <(grep -v '^-I/usr/include$' "$2")
  exec clang++ "${flags[@]/#-I/-isystem}" -I"$1" -Wall -Wextra -Werror -fsyntax-only -x c++ - <<<"$source"
fi
if [[ -n ${ACC_NOTEBOOK_PYTHON:-} ]]; then
  EXTRA_CLING_ARGS='-O0 -std=c++20' SOURCE=$source exec "$ACC_NOTEBOOK_PYTHON" - "$2" <<'PYTHON'
import os, pathlib, sys
import cppyy
for flag in pathlib.Path(sys.argv[1]).read_text().splitlines():
    if flag.startswith("-I"):
        cppyy.add_include_path(flag[2:])
cppyy.cppdef(os.environ["SOURCE"])
PYTHON
fi
echo "skipped: neither clang++ nor ACC_NOTEBOOK_PYTHON, which has cling"
exit 77
