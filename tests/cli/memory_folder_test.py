#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""memory_folder_test.py ACC: what workers write to ACC_MEMORY_FOLDER is there after restarts, and goes with the job."""

import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile

ACC = pathlib.Path(sys.argv[1]).resolve()

# Each attempt adds a line; the first ends by a signal that nothing can catch.
WORKER = """
import os, signal
with open(os.path.join(os.environ["ACC_MEMORY_FOLDER"], "attempts"), "a+") as file:
    file.write(os.environ["TORCHELASTIC_RESTART_COUNT"])
    file.flush()
    file.seek(0)
    print(os.environ["ACC_MEMORY_FOLDER"], file.read(), flush=True)
if os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
    os.kill(os.getpid(), signal.SIGKILL)
"""


def acc(folder, *words):
    return [ACC, "run", "--memory-checkpoints", "1MB", *words, folder / "worker.py"]


def files_survive_restarts_and_go_with_the_job(folder):
    for words in [], ["--preload", "json"], ["--pid-namespace"]:
        done = subprocess.run(acc(folder, "--max-restarts", "1", *words), capture_output=True, text=True)
        assert done.returncode == 0, (words, done)
        path, attempts = done.stdout.splitlines()[-1].split()
        assert attempts == "01" and not os.path.exists(path), (words, done)


def a_job_that_fails_leaves_nothing(folder):
    done = subprocess.run(acc(folder), capture_output=True, text=True)
    assert done.returncode == 137, done
    assert not os.path.exists(done.stdout.split()[0]), done


def folders_that_may_not_be_written_go_too(folder):
    script = 'mkdir -p "$ACC_MEMORY_FOLDER/a/b" && chmod 500 "$ACC_MEMORY_FOLDER/a" && echo "$ACC_MEMORY_FOLDER"'
    # root may write everywhere. Another user may not even enter the folder of the build.
    folder.chmod(0o755)
    user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] if os.geteuid() == 0 else []
    program = shutil.copy(ACC, folder)
    done = subprocess.run([*user, program, "run", "--memory-checkpoints", "1MB", "--no-python", "/bin/sh", "-c", script],
                          capture_output=True, text=True, cwd="/")
    assert done.returncode == 0 and not os.path.exists(done.stdout.strip()), done


def a_job_within_a_job_has_not_the_folder_of_the_outer_one(folder):
    inner = "import os\nprint(os.environ.get('ACC_MEMORY_FOLDER'), flush=True)\n"
    (folder / "inner.py").write_text(inner)
    (folder / "worker.py").write_text(f"import subprocess\nsubprocess.run([{str(ACC)!r}, 'run', {str(folder / 'inner.py')!r}], check=True)\n")
    done = subprocess.run(acc(folder), capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout == "None\n", done


def nothing_is_left_of_a_job_that_was_killed(folder):
    (folder / "worker.py").write_text("import os, time\nprint(os.environ['ACC_MEMORY_FOLDER'], flush=True)\ntime.sleep(1000)\n")
    job = subprocess.Popen(acc(folder), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    path = job.stdout.readline().strip()
    assert os.stat(path).st_mode & 0o777 == 0o700, path
    # Of acc's processes none must see that another one is killed.
    processes = [job.pid]
    for pid in processes:
        os.kill(pid, signal.SIGSTOP)
        processes += map(int, pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split())
    assert len(processes) > 3, processes
    for pid in processes:
        os.kill(pid, signal.SIGKILL)
    job.communicate()
    assert os.path.exists(path)
    subprocess.run([ACC, "run", "--no-python", "true"], check=True)
    assert not os.path.exists(path)


def what_there_is_no_room_for_is_refused(folder):
    done = subprocess.run([ACC, "run", "--memory-checkpoints", "900TB", folder / "worker.py"], capture_output=True, text=True)
    assert done.returncode == 1 and done.stdout == "", done
    assert done.stderr.startswith("acc: --memory-checkpoints: 838190.3 GiB are asked for, and "), done


def main():
    with tempfile.TemporaryDirectory(prefix="acc-memory-") as name:
        folder = pathlib.Path(name)
        # Whatever job starts next removes what a killed one left, also that of another test.
        runtime = folder / "runtime"
        runtime.mkdir(mode=0o700)
        os.environ["XDG_RUNTIME_DIR"] = str(runtime)
        (folder / "worker.py").write_text(WORKER)
        files_survive_restarts_and_go_with_the_job(folder)
        a_job_that_fails_leaves_nothing(folder)
        what_there_is_no_room_for_is_refused(folder)
        folders_that_may_not_be_written_go_too(folder)
        a_job_within_a_job_has_not_the_folder_of_the_outer_one(folder)
        nothing_is_left_of_a_job_that_was_killed(folder)


main()
