# SPDX-License-Identifier: Apache-2.0
"""Rank 1 raises; what torch's @record leaves then is written here by hand, so that no torch is needed."""
import json
import os
import signal
import sys
import time
import traceback

import dump  # noqa: F401

if os.environ["RANK"] != "1":
    signal.pause()
while len([name for name in os.listdir(os.environ["DUMP_DIR"]) if name.endswith(".json")]) < 2:
    os.sched_yield()
try:
    raise ValueError("boom")
except ValueError as error:
    extra = {"py_callstack": traceback.format_exc(), "timestamp": str(int(time.time()))}
    with open(os.environ["TORCHELASTIC_ERROR_FILE"], "w") as f:
        json.dump({"message": {"message": f"ValueError: {error}", "extraInfo": extra}}, f)
    sys.exit(1)
