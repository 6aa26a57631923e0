#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# with_peer.sh [--other] MODULE SCRIPT [ARGUMENT...]: runs SCRIPT under the Python that has the peer's MODULE:
# $ACC_PEER_PYTHON, else the active python3. --other: $ACC_OTHER_PEER_PYTHON alone, which has another torch.
# Exits 77, which CTest shows as skipped, when there is none.
python=${ACC_PEER_PYTHON:-python3}
variable=ACC_PEER_PYTHON
if [ "$1" = --other ]; then
  shift
  python=${ACC_OTHER_PEER_PYTHON:-none}
  variable=ACC_OTHER_PEER_PYTHON
fi
module=$1
shift
if ! "$python" -c "import $module" 2>/dev/null; then
  echo "SKIPPED: $python has no $module; set $variable to a Python that has"
  exit 77
fi
exec "$python" "$@"
