#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# with_peer.sh [--other] MODULE SCRIPT [ARGUMENT...]: runs SCRIPT under the Python that has the peer's MODULE:
# $ACC_PEER_PYTHON, else the active python3. --other: $ACC_OTHER_PEER_PYTHON alone, which has another torch.
# Exits 77, which CTest shows as skipped, when there is none.
peers="the peers"
python=${ACC_PEER_PYTHON:-python3}
variable=ACC_PEER_PYTHON
if [ "$1" = --other ]; then
  shift
  python=${ACC_OTHER_PEER_PYTHON:-none}
  variable=ACC_OTHER_PEER_PYTHON
  peers="another torch"
fi
module=$1
shift
if ! "$python" -c "import sys, importlib.util as util; sys.exit(not util.find_spec('$module'))" 2>/dev/null; then
  echo "skipped: $variable names no Python with $peers"
  echo "($python has no $module)"
  exit 77
fi
exec "$python" "$@"
