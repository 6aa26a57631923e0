#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tell_and_wait.sh FOLDER: a worker that writes what it was told as one line to FOLDER/telephone, and ends with
# the code that it is given through a FIFO of its own.
answer=$1/answer.$$
mkfifo "$answer"
echo "$$ $GROUP_RANK $RANK $WORLD_SIZE $LOCAL_RANK $MASTER_ADDR $MASTER_PORT $TORCHELASTIC_USE_AGENT_STORE" \
  "$TORCHELASTIC_RESTART_COUNT" >"$1/telephone"
read -r code <"$answer"
exit "$code"
