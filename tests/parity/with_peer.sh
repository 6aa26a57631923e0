#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# with_peer.sh MODULE SCRIPT [ARGUMENT...]: runs SCRIPT under the Python that has the peer's MODULE:
# $ACC_PEER_PYTHON, else the active python3. Exits 77, which CTest shows as skipped, when there is none.
module=$1
shift
python=${ACC_PEER_PYTHON:-python3}
if ! "$python" -c "import $module" 2>/dev/null; then
  echo "SKIPPED: $python has no $module; set ACC_PEER_PYTHON to a Python that has"
  exit 77
fi
exec "$python" "$@"
