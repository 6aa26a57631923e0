# SPDX-License-Identifier: Apache-2.0
"""recovery_machines_test.py ACC PROGRAM: machines of a job are lost with all of their memory. Those that replace them get
the training's state from the others, and it ends with the very weights of one that nobody disturbed; without a replacement
fewer processes go on. PROGRAM is recovering_run."""
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from machines import ENVIRONMENT, Job  # noqa: E402

acc, program = sys.argv[1:]


def check(folder, whole, lost, replaced):
    job = Job(acc, [program, folder], "3" if replaced else "1:3")
    job.sort_by_rank(r"rank (\d+) goes on after step 0")
    job.wait_for("step 12")
    job.lose(lost)
    for _ in range(replaced):
        job.add()
    text = job.end()
    after = {int(step) for step in re.findall(r"goes on after step (\d+)", text)} - {0}
    print("lost", lost, "replaced" if replaced else "not replaced", "went on after", sorted(after))
    if not after or "damaged" in text:
        sys.exit(f"did not go on:\n{text}")
    if replaced and (folder / "model.safetensors").read_bytes() != (whole / "model.safetensors").read_bytes():
        sys.exit(f"the weights differ:\n{text}")


with tempfile.TemporaryDirectory(prefix="acc-machines-") as name:
    whole = pathlib.Path(name, "whole")
    subprocess.run([acc, "run", "--standalone", "--no-python", "--nproc-per-node", "3", program, whole], check=True,
                   env=ENVIRONMENT, stdout=subprocess.DEVNULL)
    for lost in ([2], [0], [1, 2], [0, 1]):
        check(pathlib.Path(name, "-".join(map(str, lost))), whole, lost, len(lost))
    check(pathlib.Path(name, "fewer"), whole, [2], 0)
