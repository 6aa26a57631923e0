# SPDX-License-Identifier: Apache-2.0
"""What an unmodified script learns from accelerate's Accelerator(), as one line of JSON per process."""
import json
import os

from accelerate import Accelerator

accelerator = Accelerator()
state = {
    "distributed_type": accelerator.distributed_type.value,
    "num_processes": accelerator.num_processes,
    "process_index": accelerator.process_index,
    "local_process_index": accelerator.local_process_index,
    "device": str(accelerator.device),
    "mixed_precision": accelerator.mixed_precision,
}
print(json.dumps(state) + "\n", end="", flush=True)
accelerator.end_training()
# torch 2.11 sometimes aborts while the interpreter ends ("terminate called without an active exception"), under
# torchrun as well.
os._exit(0)
