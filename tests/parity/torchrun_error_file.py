# SPDX-License-Identifier: Apache-2.0
"""torchrun_error_file.py MNIST: torchrun's report names what a worker that uses libacc has failed with."""
import subprocess
import sys

command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "--no-python", sys.argv[1],
           "--data-dir", "/no/such/folder"]
job = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, check=False)
report = job.stderr[job.stderr.rfind("Root Cause"):]
print(report)
shown = [line for line in report.splitlines() if "traceback :" in line]
sys.exit(0 if job.returncode == 1 and shown and "/no/such/folder" in shown[0] else 1)
