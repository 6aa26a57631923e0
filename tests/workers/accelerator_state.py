# SPDX-License-Identifier: Apache-2.0
"""What an unmodified script learns from accelerate's Accelerator(), as one line of JSON per process."""
import json
import os

import torch.distributed
from accelerate import Accelerator

accelerator = Accelerator()
state = {
    "distributed_type": accelerator.distributed_type.value,
    "num_processes": accelerator.num_processes,
    "process_index": accelerator.process_index,
    "local_process_index": accelerator.local_process_index,
    "device": str(accelerator.device),
    "mixed_precision": accelerator.mixed_precision,
    "is_main_process": accelerator.is_main_process,
    "is_last_process": accelerator.is_last_process,
    "backend": torch.distributed.get_backend(),
    "dynamo": accelerator.state.dynamo_plugin.backend.value,
    "gradient_accumulation_steps": accelerator.gradient_accumulation_steps,
    "ranks": [int(os.environ[name]) for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "GROUP_RANK")],
}
print(json.dumps(state) + "\n", end="", flush=True)
# Who is quick must not close its connections while another still makes its own.
accelerator.wait_for_everyone()
accelerator.end_training()
# torch 2.11 sometimes aborts while the interpreter ends ("terminate called without an active exception"), under
# torchrun as well.
os._exit(0)
