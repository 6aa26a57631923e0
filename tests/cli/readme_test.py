#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs every command of README.md, in a folder with the files that they name.

    readme_test.py ACC FAKE_NVML_FOLDER

A command is a line of a code block, or what stands between backticks and begins as a command. One that is not in
`CASES` below, or is there no longer, fails the test. Pages of apps/docs share the cases (guide_test.py).
"""

import contextlib
import json
import os
import pathlib
import pty
import re
import select
import shlex
import shutil
import signal
import struct
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
ACC = pathlib.Path(sys.argv[1]).resolve()
FAKE_NVML = pathlib.Path(sys.argv[2]).resolve()
LIMIT = 120  # seconds after which a command counts as hung

TRAIN = """\
import os, sys
words = ["rank", os.environ["RANK"], "of", os.environ["WORLD_SIZE"], os.environ.get("ACCELERATE_MIXED_PRECISION", "")]
os.write(1, (" ".join(words + sys.argv[1:]) + "\\n").encode())  # whole, beside other nodes' lines
"""
WAIT = """\
import os, time
print("hello", os.environ["RANK"], flush=True)
with open("up", "a") as up:
    print("up", file=up)
time.sleep(1000)
"""


def commands_of(readme):
    """The commands in the order of the file, without duplicates."""
    commands = []
    in_fence = False
    for line in readme.splitlines():
        if line.startswith("```"):
            in_fence = not in_fence
        if in_fence:
            continue
        if line.startswith("    ") and line.strip():
            commands.append(line.strip().split("   #")[0].strip())
        else:
            spans = re.findall(r"`([^`]+)`", line)
            commands += [span for span in spans if re.match(r"(acc \S+|cmake|man|source|scripts/\S+) ", span)]
    return list(dict.fromkeys(commands))


class Skipped(Exception):
    """A requirement of the command is missing on this machine."""


def need(condition, what):
    if not condition:
        raise AssertionError(what)


class Workspace:
    """A folder for one command: the files that the README names, a home, and tools."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        home = self.folder / "home"
        tools = self.folder / "tools"
        runtime = self.folder / "run"
        for made in (home, tools, runtime, self.folder / "models/llama", self.folder / "build/release/bin"):
            made.mkdir(parents=True)
        runtime.chmod(0o700)
        self.environment = {
            "HOME": str(home), "XDG_RUNTIME_DIR": str(runtime), "LANG": "C.UTF-8", "TERM": "dumb",
            "PATH": f"{tools}:{ACC.parent}:{os.environ.get('PATH', '/usr/bin:/bin')}",
            "LD_LIBRARY_PATH": f"{FAKE_NVML}:{os.environ.get('LD_LIBRARY_PATH', '')}", "FAKE_NVML_GPUS": "4"}
        for name in ("TMPDIR", "ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS"):
            if name in os.environ:
                self.environment[name] = os.environ[name]
        (self.folder / "train.py").write_text(TRAIN)
        (self.folder / "wait.py").write_text(WAIT)
        self.program("build/release/bin/mnist", 'echo "mnist $RANK of $WORLD_SIZE"')
        for number in (1, 2):
            self.shard(number)

    def program(self, name, body):
        file = self.folder / name
        file.write_text(f"#!/bin/sh\n{body}\n")
        file.chmod(0o755)

    def shard(self, number):
        """A safetensors file with one tensor of four floats."""
        header = json.dumps({f"weight{number}": {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]}}).encode()
        file = self.folder / f"models/llama/model-{number:05}-of-00002.safetensors"
        file.write_bytes(struct.pack("<Q", len(header)) + header + struct.pack("<4f", *range(4)))

    def start(self, command, **streams):
        streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT} | streams
        return subprocess.Popen(["bash", "-c", command], cwd=self.folder, env=self.environment, text=True, **streams)

    def run(self, command, expect=0, **streams):
        """Returns the output."""
        process = self.start(command, **streams)
        try:
            text, _ = process.communicate(timeout=LIMIT)
        except subprocess.TimeoutExpired:
            process.kill()
            raise AssertionError(f"hangs: {process.communicate()[0]}") from None
        need(process.returncode == expect, f"exit code {process.returncode}: {text}")
        return text

    @contextlib.contextmanager
    def job(self):
        """Starts a job of two ranks that have printed hello; returns its id."""
        process = self.start("exec acc launch --cpu --num_processes 2 wait.py")
        try:
            while not (self.folder / "up").exists() or (self.folder / "up").read_text().count("up\n") < 2:
                need(process.poll() is None, "the job has ended")
                select.select([], [], [], 0.01)
            yield f"wait-{process.pid}"
        finally:
            process.terminate()
            process.communicate()


def says(*parts):
    """Checks that the command prints each of these."""
    def case(workspace, command):
        text = workspace.run(command)
        for part in parts:
            need(part in text, f"no '{part}' in: {text}")
    return case


def trains(ranks, *more):
    lines = [f"rank {rank} of {ranks} {' '.join(more)}".rstrip() for rank in range(ranks)]

    def case(workspace, command):
        said = [re.sub(" +", " ", line).rstrip() for line in workspace.run(command).splitlines()]
        for line in lines:
            need(line in said, f"no '{line}' in: {said}")
    return case


def with_config(case):
    def run(workspace, command):
        workspace.run("acc config --yes")
        case(workspace, command)
    return run


def config_set(workspace, command):
    workspace.run("acc config --yes distributed_type=FSDP num_processes=2")
    workspace.run(command)
    need(workspace.run("acc config get fsdp_config.fsdp_version") == "2\n", "the value is not in the file")


def config_asks(workspace, command):
    """Answers every question with Enter, for its default."""
    with open(workspace.folder / "answers", "w+") as answers:
        answers.write("\n" * 100)
        answers.seek(0)
        text = workspace.run(command, stdin=answers)
    need("The configuration was saved at " in text, text)


def merges(workspace, command):
    workspace.run(command)
    need((workspace.folder / "merged/model.safetensors").exists(), "no merged file")


def beside_a_job(*parts):
    def case(workspace, command):
        with workspace.job() as job:
            text = workspace.run(command.replace("JOB", job))
            for part in parts:
                need(part.replace("JOB", job) in text, f"no '{part}' in: {text}")
    return case


def follows_logs(workspace, command):
    with workspace.job() as job:
        reader = workspace.start("exec " + command.replace("JOB", job))
        # Jobs of other tests may be running, too, also in other containers.
        line = next((text for text in reader.stdout if not text.startswith("acc: job ")), "")
        need(line == "hello 0\n", line + ("" if reader.poll() is None else reader.stdout.read()))
        workspace.run(f"acc stop {job}")
        text, _ = reader.communicate(timeout=LIMIT)
        need(reader.returncode == 0 and "hello" not in text, text)


def on_terminal(workspace, command, *parts, answers=()):
    """Runs the command as the leader of a session with a terminal, and returns what it shows. `answers`: texts in it, and the
    keys to press then."""
    answers = list(answers)
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(workspace.folder)
        os.execvpe("bash", ["bash", "-c", command], workspace.environment)
    text = ""
    with contextlib.suppress(OSError):  # EIO: the other end of the terminal is closed
        while select.select([terminal], [], [], LIMIT)[0]:
            text += os.read(terminal, 65536).decode()
            if answers and answers[0][0] in text:
                os.write(terminal, answers.pop(0)[1])
    os.kill(pid, signal.SIGKILL) if not os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) else None
    _, status = os.waitpid(pid, 0)
    os.close(terminal)
    need(os.waitstatus_to_exitcode(status) == 0, text)
    for part in parts:
        need(part in text, f"no '{part}' in: {text}")
    return text


def watches(workspace, command):
    workspace.environment["TERM"] = "xterm"
    with workspace.job() as job:
        # Jobs of other tests may be running, too.
        on_terminal(workspace, command, answers=[("acc top  ", f"/{job}\r".encode()), (f"- {job}  up ", b"q")])


def attaches(*parts):
    def case(workspace, command):
        workspace.environment["FAKE_NVML_GPUS"] = "2"
        workspace.program("tools/gdb", 'echo "gdb $*"')
        on_terminal(workspace, command, *parts)
    return case


def isolated(*namespaces):
    """The words in front of a shell's command that give it namespaces of its own."""
    kinds = "network" if "--net" in namespaces else "pid"
    words = ["unshare", *namespaces, *([] if os.geteuid() == 0 else ["--map-root-user"])]
    if subprocess.run([*words, "--fork", "true"], capture_output=True, check=False).returncode != 0:
        raise Skipped(f"no {kinds} namespace can be made")
    return [*words, "bash", "-c"]


def in_namespace(case):
    def run(workspace, command):
        isolated("--pid")
        case(workspace, command)
    return run


def selftest(case):
    def run(workspace, command):
        if not (ACC.parent / "acc-selftest").exists():
            raise Skipped("built without LibTorch")
        workspace.environment["FAKE_NVML_GPUS"] = "0"
        case(workspace, command)
    return run


def on_nodes(commands_of_nodes, *parts):
    """Runs one command per node; all nodes are this machine as node0, in a network namespace."""
    def case(workspace, command):
        (workspace.folder / "hosts").write_text("127.0.0.1 localhost node0\n")
        shell = isolated("--net", "--mount")
        prepare = "ip link set lo up && mount --bind hosts /etc/hosts"
        if subprocess.run([*shell, prepare], cwd=workspace.folder, capture_output=True, check=False).returncode != 0:
            raise Skipped("no network namespace can be made")
        nodes = "".join(f"{{ {one}; }} & pids+=($!)\n" for one in commands_of_nodes(command))
        script = f'{prepare}\npids=()\n{nodes}code=0\nfor pid in "${{pids[@]}}"; do wait $pid || code=$?; done\nexit $code'
        text = workspace.run(shlex.join([*shell, script]))
        for part in parts:
            need(part in text, f"no '{part}' in: {text}")
    return case


def over_ssh(case):
    """With a stand-in for ssh that runs its command, which is its last argument, on this machine."""
    def run(workspace, command):
        workspace.program("tools/ssh", 'for command; do :; done; exec sh -c "$command"')
        case(workspace, command)
    return run


def one_command(command):
    return [command]


def four_nodes(command):
    return [command] * 4


def two_ranked_nodes(command):
    return [command, command.replace("--machine_rank 0", "--machine_rank 1")]


def builds(workspace, command):
    """Not run here: builds acc, or installs dependencies. Checks only that the files exist."""
    del workspace
    presets = json.loads((ROOT / "CMakePresets.json").read_text())
    for part in command.split("&&"):
        words = shlex.split(re.sub(r"^\s*export \w+=\$\((.*)\)$", r"\1", part.strip()))
        if words[0].startswith("scripts/"):
            script = (ROOT / words[0]).read_text()
            for flag in [word for word in words if word.startswith("--")]:
                need(re.search(rf"{flag}\b", script), f"{words[0]} does not know {flag}")
        elif "--preset" in words:
            kind = "workflow" if "--workflow" in words else "build" if "--build" in words else "configure"
            name = words[words.index("--preset") + 1]
            need(name in [preset["name"] for preset in presets[f"{kind}Presets"]], f"no {kind} preset {name}")
        else:
            need(words[:2] == ["cmake", "--install"], "does not build acc")


def sets_notebooks_up(workspace, command):
    """A stand-in for Python shows which script it is to run."""
    script = ACC.parents[1] / "share/acc/notebook/install.py"
    if not script.exists():
        raise Skipped("built without LibTorch")
    workspace.program("tools/python3", 'echo "$@"')
    need(workspace.run(command) == f"{script} {command.split()[-1].strip('-')}\n", "runs another script")


def names_a_wheel(workspace, command):
    """The wheel of a release has the name of its project."""
    name = re.search(r'^name = "(.+)"$', (ROOT / "scripts/package/pyproject.toml").read_text(), flags=re.MULTILINE)[1]
    need(command == f"pip install ./{name.replace('-', '_')}-*.whl", "is not the name of the project")


def reports(workspace, command):
    workspace.run("acc launch --cpu --num_processes 2 --event-log events.jsonl train.py")
    workspace.run(command)
    need("Succeeded after " in (workspace.folder / "report.html").read_text(), "does not say how the job ended")


def writes_test_page(workspace, command):
    need("passed" in workspace.run(command), "does not say what passed")
    need("Passed: 17 of 17 checks." in (workspace.folder / "test.html").read_text(), "the page does not say what passed")


def man_page(workspace, command):
    if not shutil.which("man"):
        raise Skipped("no man")
    folder = workspace.folder / "man/man1"
    folder.mkdir(parents=True)
    (folder / "acc-launch.1").write_text(workspace.run("acc man acc-launch"))
    workspace.environment["MANPATH"] = str(folder.parent)
    need("--num_processes" in workspace.run(command + " | cat"), "no --num_processes")


CASES = {
    "pip install ./acc_launcher-*.whl": names_a_wheel,
    "scripts/quickstart": builds,
    "scripts/test": builds,
    "scripts/test --all": builds,
    "export ACC_PEER_PYTHON=$(scripts/peers)": builds,
    "export ACC_OTHER_PEER_PYTHON=$(scripts/peers --torch 2.15.0)": builds,
    "export ACC_NOTEBOOK_PYTHON=$(scripts/peers --notebook)": builds,
    "scripts/test --torch 2.15.0 -L runtime": builds,
    "cmake --preset dev": builds,
    "cmake --workflow --preset asan": builds,
    "scripts/test --preset asan-runtime": builds,
    "cmake --preset release && cmake --build --preset release": builds,
    "cmake --preset release -DACC_RUNTIME=OFF && cmake --build --preset release --target acc": builds,
    "cmake --install build/release --prefix ~/.local": builds,
    "acc launch train.py --epochs 3": trains(4, "no", "--epochs 3"),
    "acc launch --num_processes 4 --mixed_precision bf16 train.py": trains(4, "bf16"),
    "acc launch --nproc-per-node 4 --max-restarts 3 train.py": trains(4, "no"),
    "acc launch --cpu --num_processes 2 build/release/bin/mnist": says("mnist 0 of 2\n", "mnist 1 of 2\n"),
    "acc config": config_asks,
    "acc config --yes num_processes=8 mixed_precision=bf16": says("num_processes: 8\n", "mixed_precision: bf16\n"),
    "acc config check": with_config(says(": ok\n")),
    "acc config set fsdp_config.fsdp_version=2": config_set,
    "acc launch --dry_run train.py": says("train.py"),
    "acc estimate-memory models/llama --num-processes 8": says("float32"),
    "acc merge-weights models/llama merged": merges,
    "acc top": watches,
    "acc ps": beside_a_job("JOB  run id "),
    "acc ps --stacks JOB": beside_a_job("rank 0: ", "\nrank 1 (local rank 1, pid "),
    "acc logs -f --rank 0 JOB": follows_logs,
    "acc stop JOB": beside_a_job("JOB has ended with exit code 143\n"),
    "acc launch --hang-timeout 600 --on-hang restart --max-restarts 3 train.py": trains(4, "no"),
    "acc launch --event-log events.jsonl train.py": trains(4, "no"),
    "acc report events.jsonl -o report.html": reports,
    "acc launch --attach 1 train.py": attaches("acc: rank 1 has the terminal, ", "rank 1 of 2"),
    "acc launch --attach 0 --wrap-rank '0:gdb --args' build/release/bin/mnist": attaches("gdb --args build/release/bin/mnist"),
    "acc launch --pid-namespace train.py": in_namespace(trains(4, "no")),
    "acc test --html test.html": selftest(writes_test_page),
    "acc launch --hosts node0,node1:4 train.py": over_ssh(on_nodes(one_command, "rank 0 of 8", "rank 7 of 8")),
    "acc test --json": selftest(says('"passed": true')),
    "acc test --nodes": says("preflight of 1 node", "memory free"),
    "acc env": says("acc"),
    "acc new training my_project": says("my_project/main.cpp\n", "  acc launch build/my_project\n"),
    "acc notebook install": sets_notebooks_up,
    "acc notebook --check": sets_notebooks_up,
    "acc launch --help": says("--num_processes", "--help-all"),
    "man acc-launch": man_page,
    "source <(acc completion bash)": says(),
    "acc run --standalone --nproc-per-node 8 --max-restarts 3 train.py": trains(8),
    "acc run --nnodes 2:4 --nproc-per-node 8 --max-restarts 3 --rdzv-backend c10d --rdzv-endpoint node0:29400"
    " --rdzv-id job7 train.py": on_nodes(four_nodes, "rank 0 of 32", "rank 31 of 32"),
    "acc launch --num_machines 2 --machine_rank 0 --main_process_ip node0 --main_process_port 29500 --num_processes 16"
    " train.py": on_nodes(two_ranked_nodes, "rank 0 of 16", "rank 15 of 16"),
}


def main():
    commands = commands_of((ROOT / "README.md").read_text())
    failed = False
    for command in commands:
        if command not in CASES:
            print(f"FAILED: {command}: tests/cli/readme_test.py does not run it")
            failed = True
            continue
        try:
            with tempfile.TemporaryDirectory(prefix="acc-readme-") as folder:
                CASES[command](Workspace(folder), command)
            print(f"ok: {command}")
        except Skipped as reason:
            print(f"skipped: {reason}\n({command})")
        except AssertionError as error:
            print(f"FAILED: {command}: {error}")
            failed = True
    guide = "\n".join(page.read_text() for page in (ROOT / "apps/docs").glob("*.md"))
    for command in CASES.keys() - set(commands):
        if command not in guide:
            print(f"FAILED: {command}: is neither in README.md nor in apps/docs")
            failed = True
    return failed


if __name__ == "__main__":
    sys.exit(main())
