# SPDX-License-Identifier: Apache-2.0
"""compare.py ACC PROGRAM: what save_state of C++ and of accelerate with FSDP2 and SHARDED_STATE_DICT write is loaded by the
other's load_state: training goes on with the same losses, and on other numbers of processes it is saved again to the bit.
What accelerate writes with FULL_STATE_DICT is loaded by C++, sharded or not. PROGRAM is sharded_training."""
import os
import subprocess
import sys
import tempfile

acc, program = sys.argv[1:]
cpp = [program]
python = [os.path.join(os.path.dirname(os.path.abspath(__file__)), "train.py")]
environment = {**os.environ, "PYTHON_EXEC": sys.executable, "OMP_NUM_THREADS": "1", "ONEDNN_MAX_CPU_ISA": "AVX512_CORE_FP16",
               "FSDP_STATE_DICT_TYPE": "SHARDED_STATE_DICT"}
sharded = {"ACCELERATE_USE_FSDP": "true", "FSDP_VERSION": "2", "FSDP_AUTO_WRAP_POLICY": "TRANSFORMER_BASED_WRAP",
           "FSDP_TRANSFORMER_CLS_TO_WRAP": "Block"}


def run(side, processes, *words, **more):
    start = ["--no-python"] if side is cpp else ["--preload", "torch,torch._dynamo,accelerate"]
    command = [acc, "run", "--standalone", *start, "--nproc-per-node", str(processes), *side, *words]
    variables = {**environment, **(sharded if side is cpp else {}), **more}
    done = subprocess.run(command, env=variables, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}:\n{done.stdout}{done.stderr}")
    return [tuple(map(float, line.split()[1:])) for line in done.stdout.splitlines() if line.startswith("step ")]


def digest(folder):
    lines = subprocess.run([program, "digest", folder], check=True, capture_output=True, text=True).stdout.splitlines()
    return sorted(lines)


def require_equal(saver, saved, loader, loaded):
    for (step, loss, rate), (other_step, other_loss, other_rate) in zip(saved, loaded, strict=True):
        if step != other_step or abs(loss - other_loss) > 1e-5 or abs(rate - other_rate) > 1e-15:
            sys.exit(f"saved by {saver[-1]}: {saved}, loaded by {loader[-1]}: {loaded}")
    print(f"saved by {saver[-1]}: losses differ by {max(abs(a[1] - b[1]) for a, b in zip(saved, loaded)):.3g}")


def compare(saver, loader, root):
    name = os.path.join(root, "python" if saver is python else "cpp")
    saved = run(saver, 2, "steps", "3", "save", name, "steps", "3")[3:]
    loaded = run(loader, 2, "load", name, "steps", "3")
    require_equal(saver, saved, loader, loaded)
    run(loader, 3, "load", name, "save", name + "3")
    run(saver, 2, "load", name + "3", "save", name + "2")
    for folder in (name + "3", name + "2"):
        differences = set(digest(folder)) ^ set(digest(name))
        if differences:
            sys.exit(f"{folder} differs from {name}: {sorted(differences)}")


def compare_full(root):
    name = os.path.join(root, "full")
    saved = run(python, 2, "steps", "3", "save", name, "steps", "3", FSDP_STATE_DICT_TYPE="FULL_STATE_DICT")[3:]
    for use_fsdp in ("true", "false"):
        require_equal(python, saved, cpp, run(cpp, 2, "load", name, "steps", "3", ACCELERATE_USE_FSDP=use_fsdp))
    run(cpp, 3, "load", name, "save", name + "3")
    run(cpp, 1, "load", name, "save", name + "1", ACCELERATE_USE_FSDP="false")
    run(cpp, 2, "load", name + "1", "save", name + "2")
    if digest(name + "3") != digest(name + "2"):
        sys.exit(f"{name}, loaded and saved by three processes: {digest(name + '3')}, by one: {digest(name + '2')}")


with tempfile.TemporaryDirectory(prefix="two words ") as root:
    compare(python, cpp, root)
    compare(cpp, python, root)
    compare_full(root)
