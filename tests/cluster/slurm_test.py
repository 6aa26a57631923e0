# SPDX-License-Identifier: Apache-2.0
"""Jobs that a real Slurm starts, whose nodes are network namespaces of this machine. Usage: see run_cases()."""

import datetime
import os
import pathlib
import re
import shutil
import subprocess
import sys

from cluster import SUPPORT, WORKERS, Cluster, case, run_cases, skip

PAGE = pathlib.Path(__file__).resolve().parents[2] / "apps" / "docs" / "clusters.md"
WORKER = WORKERS / "meet.py"
UNTIL_TOLD = WORKERS / "until_told.py"


class Slurm(Cluster):
    """A Slurm on the nodes; its commands run on node 0."""

    def __enter__(self):
        if not shutil.which("slurmctld", path=os.environ.get("PATH", "") + ":/usr/sbin"):
            skip("no Slurm")
        super().__enter__()
        self.slurm = os.path.join(self.folder.name, "slurm")
        name, value = self.mark.split("=")
        made = subprocess.run(
            ["bash", SUPPORT / "slurm_up.sh", self.slurm, str(self.count), "4", "2"], text=True, capture_output=True,
            env={**os.environ, name: value, "SLURM_UP_AUTH": "none", "SLURM_UP_NETNS": self.tag})
        if made.returncode != 0:
            self.__exit__(None, None, None)
            raise RuntimeError(made.stderr)
        return self

    def __exit__(self, kind, *rest):
        self.script("slurm_down.sh", self.slurm, "--purge", check=False)
        leftovers = self.processes()
        super().__exit__(kind, *rest)
        assert kind is not None or not leftovers, f"processes {leftovers} were left behind"

    def run(self, *words, env=None):
        """A command of Slurm on node 0, to its end."""
        job = self.on_node(0, *words, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                           env={**os.environ, "HOME": self.folder.name, "SLURM_CONF": f"{self.slurm}/slurm.conf", **(env or {})})
        out, err = job.communicate(timeout=60)
        return subprocess.CompletedProcess(job.args, job.returncode, out, err)

    def acc_words(self, *flags, command="launch", worker=WORKER, arguments=()):
        return [self.acc, command, "--python", sys.executable, *flags, str(worker), *arguments]

    def submit(self, *lines, flags=("-N2",)):
        """Submits a batch script of these lines; returns its job."""
        script = os.path.join(self.folder.name, "job.sh")
        pathlib.Path(script).write_text("\n".join(["#!/bin/sh", *lines, ""]))
        done = self.run("sbatch", "--parsable", "--open-mode=append", "-o", os.path.join(self.folder.name, "job-%j.out"), *flags,
                        script)
        assert done.returncode == 0, done
        return Job(self, done.stdout.strip())

    def batch(self, *lines, flags=("-N2",)):
        """A batch script of these lines, to its end: its output and exit code."""
        script, out = (os.path.join(self.folder.name, name) for name in ("job.sh", "job.out"))
        pathlib.Path(script).write_text("\n".join(["#!/bin/sh", *lines, ""]))
        done = self.run("sbatch", "--wait", "-o", out, *flags, script)
        return subprocess.CompletedProcess(done.args, done.returncode, pathlib.Path(out).read_text(), done.stderr)


class Job:
    """A batch job."""

    def __init__(self, slurm, number):
        self.slurm, self.number = slurm, number

    def output(self):
        out = pathlib.Path(self.slurm.folder.name, f"job-{self.number}.out")
        return out.read_text() if out.exists() else ""

    def until_says(self, *texts, limit=60):
        """Waits until its output has all these texts."""
        self.until(f"{texts} in the output", lambda: all(text in self.output() for text in texts), limit)
        return self.output()

    def state(self):
        """Its state, how often it was started again, and whether it has to wait long for that, as of one moment."""
        shown = self.slurm.run("scontrol", "show", "job", self.number).stdout
        state, restarts, begin = (re.search(rf"\b{name}=(\S+)", shown)[1] for name in ("JobState", "Restarts", "StartTime"))
        soon = (datetime.datetime.now() + datetime.timedelta(seconds=30)).isoformat()
        return state, int(restarts), state == "PENDING" and begin != "Unknown" and begin > soon

    def until(self, what, condition, limit=60):
        try:
            self.slurm.until(what, condition, limit)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.slurm.run('scontrol', 'show', 'job', self.number).stdout}{self.output()}")

    def until_state(self, state):
        self.until(f"job {state}", lambda: self.state()[0] == state)

    def until_started_again(self, restarts):
        """Does not wait the two minutes after which Slurm starts a requeued job. Of the second in which it ended slurmd would
        take the new start for one that was killed already."""
        def started():
            state, count, waits = self.state()
            if waits:
                self.slurm.run("scontrol", "update", f"jobid={self.number}", "starttime=now+2")
            return state in ("RUNNING", "COMPLETED") and count == restarts
        self.until("a start again", started)


def need_mpi():
    """Both: each has a way of its own to start processes, and `mpirun` may be either."""
    for program, name in (("mpirun.openmpi", "Open MPI"), ("mpirun.mpich", "MPICH")):
        if not shutil.which(program):
            skip(f"no {name}")


def workers_of(done):
    """The lines of the workers, sorted: each said once that it met all the others."""
    assert done.returncode == 0, (done.stdout, done.stderr)
    return sorted(line for line in done.stdout.splitlines() if line.startswith("rank "))


TWO_EACH = ["rank 0 of 4, local 0, on node0", "rank 1 of 4, local 1, on node0", "rank 2 of 4, local 0, on node1",
            "rank 3 of 4, local 1, on node1"]


@case
def a_step_is_one_job(acc):
    with Slurm(acc, 2) as slurm:
        two = slurm.acc_words("--nproc_per_node", "2")
        done = slurm.run("srun", "-N2", *two)
        assert workers_of(done) == TWO_EACH, done
        said = [line for line in done.stderr.splitlines() if "Slurm" in line]
        assert len(said) == 1 and re.search(r"Slurm \(job \d+\): 2 nodes; this is node 0, node0, with 2 workers; they meet at "
                                            r"node0:2\d{4}$", said[0]), done.stderr
        one = slurm.acc_words()
        assert workers_of(slurm.run("srun", "-N2", *one)) == ["rank 0 of 2, local 0, on node0", "rank 1 of 2, local 0, on node1"]
        # A worker for each task.
        several = slurm.run("srun", "-N2", "--ntasks-per-node=2", *one)
        assert workers_of(several) == TWO_EACH
        assert several.stderr.count("no GPU is visible") == 1, several.stderr
        cyclic = workers_of(slurm.run("srun", "-N2", "-n4", "--ntasks-per-node=2", "-m", "cyclic", *one))
        assert cyclic == ["rank 0 of 4, local 0, on node0", "rank 1 of 4, local 0, on node1", "rank 2 of 4, local 1, on node0",
                          "rank 3 of 4, local 1, on node1"]
        # Each task sees one of the two GPUs that the nodes pretend to have.
        alone = workers_of(slurm.run("srun", "-N2", "--ntasks-per-node=2", "--gpus-per-task=1", *one))
        assert alone == [re.sub("local .", "local 0", line) for line in TWO_EACH]


@case
def tasks_distributed_by_hand_are_one_job(acc):
    with Slurm(acc, 2) as slurm:
        hosts = os.path.join(slurm.folder.name, "hosts")
        for order, expected in [(["node1", "node0"], ["rank 0 of 2, local 0, on node0", "rank 1 of 2, local 0, on node1"]),
                                (["node1", "node1", "node0"],
                                 ["rank 0 of 3, local 0, on node0", "rank 1 of 3, local 0, on node1",
                                  "rank 2 of 3, local 1, on node1"])]:
            pathlib.Path(hosts).write_text("\n".join(order) + "\n")
            done = slurm.run("srun", "-n", str(len(order)), "--distribution=arbitrary", *slurm.acc_words(),
                             env={"SLURM_HOSTFILE": hosts})
            assert workers_of(done) == expected, done


@case
def an_allocation_is_one_job_through_srun(acc):
    with Slurm(acc, 2) as slurm:
        line = " ".join(slurm.acc_words("--nproc_per_node", "2"))
        by_srun = " ".join(slurm.acc_words("--srun", "--nproc_per_node", "2"))
        assert workers_of(slurm.batch(f"srun {line}")) == TWO_EACH
        assert workers_of(slurm.batch(by_srun)) == TWO_EACH
        # Whatever number of tasks the script asked for.
        assert workers_of(slurm.batch(by_srun, flags=("-N2", "--ntasks-per-node=4"))) == TWO_EACH
        assert workers_of(slurm.run("salloc", "-N2", "srun", *line.split())) == TWO_EACH
        assert workers_of(slurm.run("salloc", "-N2", *by_srun.split())) == TWO_EACH
        # Only one of the nodes would run.
        script = slurm.batch(line)
        assert script.returncode == 2, script
        assert re.fullmatch(r"acc: this is job \d+'s batch script on node0 \(2 nodes, no step\)\. .*\n", script.stdout), script
        shell = slurm.run("salloc", "-N2", *line.split())
        assert shell.returncode == 2 and "acc: this is a shell in the allocation of job " in shell.stderr, shell
        # A script on one node is all there is.
        assert len(workers_of(slurm.batch(line, flags=("-N1",)))) == 2


@case
def all_components_of_a_heterogeneous_job_are_one(acc):
    with Slurm(acc, 3) as slurm:
        components = ("-N1", ":", "-N2")
        all_nodes = [f"rank {rank} of 6, local {rank % 2}, on node{rank // 2}" for rank in range(6)]
        line = " ".join(slurm.acc_words("--nproc_per_node", "2"))
        assert workers_of(slurm.batch(f"srun --het-group=0-1 --ntasks-per-node=1 {line}", flags=components)) == all_nodes
        by_srun = " ".join(slurm.acc_words("--srun", "--nproc_per_node", "2"))
        assert workers_of(slurm.batch(by_srun, flags=components)) == all_nodes
        # The batch script runs in the first component, on one node.
        script = slurm.batch(line, flags=components)
        assert script.returncode == 2 and "srun --het-group=0-1 --ntasks-per-node=1 acc launch" in script.stdout, script
        # What srun starts without the option is a job of its first component.
        assert workers_of(slurm.batch(f"srun {line}", flags=components)) == [
            "rank 0 of 2, local 0, on node0", "rank 1 of 2, local 1, on node0"]


def page_blocks(section):
    """The blocks of commands of a section of the page on clusters."""
    text = (PAGE.read_text() + "\n## ").split(f"\n## {section}\n")[1].split("\n## ")[0]
    return [re.sub(r"^    ", "", block.strip("\n"), flags=re.M) for block in re.findall(r"(?:^    .*\n)+", text, flags=re.M)]


@case
def the_page_on_clusters_is_followed(acc):
    """Its lines for Slurm and MPI start jobs as they stand there, with smaller numbers."""
    need_mpi()
    with Slurm(acc, 2) as slurm:
        folder = pathlib.Path(slurm.folder.name)
        shutil.copy(WORKER, folder / "train.py")
        (folder / "acc").symlink_to(acc)
        slurm_script, = page_blocks("Slurm")
        mpi, = page_blocks("MPI")
        limits, loop, trigger = page_blocks("Time limits, preemption, requeue")
        assert "should_stop" in loop and "check_trigger" in trigger  # held by the tests of the library and of the peers
        check, = page_blocks("Check the nodes first")[:1]
        here = {"PATH": f"{folder}:{os.environ['PATH']}", "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}

        def submitted(text):
            small = re.sub("--(gpus-per-node|cpus-per-task)=[0-9]+", r"--\1=2", text)
            (folder / "job.sh").write_text(small)
            out = folder / "job.out"
            out.unlink(missing_ok=True)
            done = slurm.run("sbatch", "--wait", "-D", folder, "-o", out, folder / "job.sh", env=here)
            return workers_of(subprocess.CompletedProcess(done.args, done.returncode, out.read_text(), done.stderr))

        for script in (slurm_script, limits):
            assert submitted(script) == ["rank 0 of 2, local 0, on node0", "rank 1 of 2, local 0, on node1"]
        for line in check.splitlines():
            done = slurm.run("salloc", "-N2", "-D", folder, "bash", "-c", f"cd {folder} && {line}", env=here)
            assert done.returncode == 0, (line, done)
        kinds = {"Open MPI": "mpirun.openmpi", "MPICH": "mpirun.mpich"}
        for line in mpi.splitlines():
            kind = next((kinds[name] for name in kinds if name in line), "mpirun.openmpi")
            (folder / "mpirun").write_text(f'#!/bin/sh\nexec {kind} "$@"\n')
            (folder / "mpirun").chmod(0o755)
            done = slurm.run("salloc", "-N2", "--ntasks-per-node=2", "bash", "-c", f"cd {folder} && {line}", env=here)
            ranks = 4 if "-np 4" in line else 2
            assert len(workers_of(done)) == ranks, (line, done)


@case
def a_printed_script_is_submitted_as_it_is(acc):
    with Slurm(acc, 2) as slurm:
        folder = slurm.folder.name
        script = os.path.join(folder, "job.sh")
        shutil.copy(WORKER, os.path.join(folder, "my train.py"))

        def printed(*flags, arguments=()):
            made = slurm.run(acc, "launch", "--print-script", "slurm", "--python", sys.executable, "--nnodes", "2", "--num_processes",
                             "4", "--num_cpu_threads_per_process", "1", *flags, "my train.py", *arguments)
            assert made.returncode == 0, made
            pathlib.Path(script).write_text(made.stdout)
            tested = slurm.run("sbatch", "--test-only", script)
            assert tested.returncode == 0 and " on nodes node[0-1] " in tested.stderr, tested

        def submitted():
            done = slurm.run("sbatch", "--parsable", "-D", folder, script)
            assert done.returncode == 0, done
            return Job(slurm, done.stdout.strip()), pathlib.Path(folder) / f"my-train-{done.stdout.strip()}.out"

        # One of the two GPUs of a node for each worker; there is no driver for them.
        printed("--multi_gpu")
        printed("--cpu", arguments=["a b", "it's $HOME", "two\nlines"])
        job, out = submitted()
        job.until_state("COMPLETED")
        lines = out.read_text().splitlines()
        assert sorted(line for line in lines if line.startswith("rank ")) == TWO_EACH, lines
        # A job that asks for another start gets it.
        printed("--cpu", arguments=["requeue"])
        job, out = submitted()
        job.until_started_again(1)
        job.until_state("COMPLETED")
        again = out.read_text().split("acc: Slurm (job")[2]
        assert sorted(line for line in again.splitlines() if line.startswith("rank ")) == TWO_EACH, out.read_text()


@case
def a_printed_pbs_script_starts_by_mpirun(acc):
    """The script alone: PBS is played by its variables, and mpirun reaches the nodes through Slurm."""
    need_mpi()
    with Slurm(acc, 2) as slurm:
        folder = pathlib.Path(slurm.folder.name)
        made = slurm.run(acc, "launch", "--print-script", "pbs", "--python", sys.executable, "--cpu", "--nnodes", "2", "--num_processes",
                         "4", str(WORKER))
        assert made.returncode == 0, made
        (folder / "job.sh").write_text(made.stdout)
        (folder / "nodes").write_text("node0\nnode1\n")
        (folder / "mpirun").symlink_to(shutil.which("mpirun.openmpi"))
        of_pbs = {"PBS_O_WORKDIR": str(folder), "PBS_NODEFILE": str(folder / "nodes"), "PATH": f"{folder}:{os.environ['PATH']}",
                  "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        assert workers_of(slurm.run("salloc", "-N2", "bash", str(folder / "job.sh"), env=of_pbs)) == TWO_EACH


@case
def a_shell_on_a_login_node_is_told_where_to_start(acc):
    with Slurm(acc, 2) as slurm:
        # Commands run on node 0.
        there = slurm.run("salloc", "-w", "node1", *slurm.acc_words())
        assert there.returncode == 2 and there.stdout == "", there
        assert re.search(r"acc: this is a shell on node0 in the allocation of job \d+, whose node is node1\. ", there.stderr), there
        one = ["--nproc_per_node", "1"]
        by_srun = slurm.run("salloc", "-w", "node1", *slurm.acc_words("--srun", *one))
        assert workers_of(by_srun) == ["rank 0 of 1, local 0, on node1"]
        here = slurm.run("salloc", "-w", "node0", *slurm.acc_words(*one))
        assert workers_of(here) == ["rank 0 of 1, local 0, on node0"]


@case
def tasks_have_the_output_of_their_rank_on_the_node(acc):
    with Slurm(acc, 1) as slurm:
        logs = os.path.join(slurm.folder.name, "logs")
        done = slurm.run("srun", "-N1", "--ntasks-per-node=2", *slurm.acc_words("--tee", "1:1", "--log-dir", logs))
        assert done.returncode == 0, done
        assert sorted(done.stdout.splitlines()) == ["[default1]:rank 1 of 2, local 1, on node0", "rank 0 of 2, local 0, on node0"], done
        only = slurm.run("srun", "-N1", "--ntasks-per-node=2", *slurm.acc_words("--local-ranks-filter", "1", "--log-dir", logs))
        assert only.stdout.splitlines() == ["rank 1 of 2, local 1, on node0"], only


@case
def copies_are_refused_or_told(acc):
    with Slurm(acc, 2) as slurm:
        several = slurm.run("srun", "-N2", "--ntasks-per-node=2", *slurm.acc_words("--nproc_per_node", "2"))
        assert several.returncode == 2 and several.stdout == "", several
        assert several.stderr.count("acc: Slurm started 2 tasks on node1 and --nproc_per_node 2 ") == 2, several.stderr
        other = slurm.run("srun", "-N2", *slurm.acc_words("--num_machines", "1"))
        assert other.returncode == 2 and other.stdout == "", other
        assert "--num_machines (num_machines = 1) and SLURM_STEP_NUM_NODES (Slurm, 2)" in other.stderr, other.stderr
        alone = slurm.run("srun", "-N2", *slurm.acc_words(command="run"))
        assert workers_of(alone) == ["rank 0 of 1, local 0, on node0", "rank 0 of 1, local 0, on node1"]
        assert alone.stderr.count("started 2 copies of this command") == 2, alone.stderr
        meant = slurm.run("srun", "-N2", *slurm.acc_words("--engine", "none", "--nproc_per_node", "2"))
        assert len(workers_of(meant)) == 4 and "Slurm" not in meant.stderr, meant


@case
def a_failure_ends_every_node(acc):
    with Slurm(acc, 2) as slurm:
        done = slurm.run("srun", "-N2", *slurm.acc_words("--nproc_per_node", "2", arguments=["fail"]))
        assert done.returncode == 7, done
        assert "node1" in done.stderr and "rank 3" in done.stderr, done.stderr


@case
def an_mpirun_is_one_job(acc):
    """Inside of Slurm, whose variables an mpirun leaves to its processes, on node 1 those of another step."""
    need_mpi()
    mpiruns = {"mpirun.openmpi": "--map-by ppr:{}:node", "mpirun.mpich": "-ppn {}"}
    with Slurm(acc, 2) as slurm:
        root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        for mpirun in mpiruns:
            for flags, each in [(["--nproc_per_node", "2"], "1"), ([], "2")]:
                words = [mpirun, *mpiruns[mpirun].format(each).split(), *slurm.acc_words(*flags)]
                done = slurm.run("salloc", "-N2", "--ntasks-per-node", each, *words, env=root)
                assert workers_of(done) == TWO_EACH, done
                assert done.stderr.count("mpirun --mca odls_base_sigkill_timeout 60") == (mpirun == "mpirun.openmpi"), done
            # Without Slurm, on one machine.
            done = slurm.run(mpirun, "-np", "2", *slurm.acc_words(), env=root)
            assert workers_of(done) == ["rank 0 of 2, local 0, on node0", "rank 1 of 2, local 1, on node0"], done
        # Its processes see the setting.
        done = slurm.run("mpirun.openmpi", "--mca", "odls_base_sigkill_timeout", "60", "-np", "2", *slurm.acc_words(), env=root)
        assert done.returncode == 0 and "odls_base_sigkill_timeout" not in done.stderr, done


@case
def a_time_limit_is_met_after_a_notice(acc):
    """USR1 comes up to a minute before the end, and at the end SIGTERM twice within milliseconds, to every process."""
    with Slurm(acc, 2) as slurm:
        words = slurm.acc_words(worker=UNTIL_TOLD, arguments=["--until", "SIGTERM", "--takes", "1"])
        job = slurm.submit(f"srun {' '.join(words)}", "echo step ended with $?", flags=("-N2", "-t1", "--signal=USR1@30"))
        job.until_says("rank 0 on node0: got SIGUSR1", "rank 1 has no handler for it and was left alone")
        said = job.until_says("rank 0 on node0: saved", "rank 1 on node1: saved", limit=100)
        job.until_state("TIMEOUT")
        said = job.output()
        # A node hears of it from Slurm or, when that is faster, from the other node.
        for told in ("passed on to rank 0\n", "rank 1 has no handler"):
            assert len(re.findall(f"acc: SIGUSR1 received(?: by node node.)?, the job is to end soon; {told}", said)) == 1, said
        assert said.count("acc: SIGTERM received, stopping 1 worker (grace 25 s)\n") == 2 and "second signal" not in said, said


@case
def a_preempted_job_is_requeued(acc):
    with Slurm(acc, 2) as slurm:
        words = slurm.acc_words("--requeue-on-preemption", worker=UNTIL_TOLD,
                                arguments=["--until", "SIGUSR1", "SIGTERM", "--runs", "2"])
        job = slurm.submit(f"srun {' '.join(words)}", "code=$?", "echo step ended with $code", "exit $code")
        run = [f"run {job.number}.0.{restarts}, restart {restarts}\n" for restarts in range(3)]
        for restarts in range(2):
            job.until_says(f"rank 0 on node0: {run[restarts]}", f"rank 1 on node1: {run[restarts]}")
            if restarts == 0:
                assert slurm.run("scancel", "-s", "USR1", job.number).returncode == 0
                said = job.until_says("step ended with 75")
                assert said.count("acc: the job was preempted and ended in time") == 2, said
            else:
                assert slurm.run("scontrol", "requeue", job.number).returncode == 0
            job.until_started_again(restarts + 1)
        said = job.until_says("step ended with 0")
        assert f"rank 0 on node0: {run[2]}" in said and f"rank 1 on node1: {run[2]}" in said, said
        job.until("the end", lambda: job.state()[:2] == ("COMPLETED", 2))


@case
def a_state_in_memory_outlives_a_preemption_and_a_cancellation(acc):
    """Slurm signals all processes, also the one that copies the state."""
    with Slurm(acc, 2) as slurm:
        runs = pathlib.Path(slurm.folder.name, "runs")
        words = slurm.acc_words("--requeue-on-preemption", "--memory-checkpoints", "100MB", worker=WORKERS / "keep_state.py",
                                arguments=[str(pathlib.Path(acc).with_name("acc-test-save-state")), str(runs)])
        job = slurm.submit(f"srun {' '.join(words)}", "code=$?", "echo step ended with $code", "exit $code")
        job.until_says("node0 goes on after 0\n", "node1 goes on after 0\n")
        assert slurm.run("scancel", "-s", "USR1", job.number).returncode == 0
        said = job.until_says("step ended with 75")
        assert f"acc: the newest state in memory is on the disk: {runs}/checkpoint-2\n" in said, said
        job.until_started_again(1)
        job.until_says("node0 goes on after 2\n", "node1 goes on after 2\n")
        assert slurm.run("scancel", job.number).returncode == 0
        job.until_state("CANCELLED")
        said = job.until_says(f"acc: the newest state in memory is on the disk: {runs}/checkpoint-4\n")
        assert "could not be put on the disk" not in said, said
        assert {"checkpoint-2", "checkpoint-4"} <= {path.name for path in runs.iterdir()} <= {
            f"checkpoint-{number}" for number in (1, 2, 3, 4)}, said


@case
def a_cancelled_job_has_one_exit_code(acc):
    with Slurm(acc, 2) as slurm:
        step = slurm.on_node(0, "srun", "-N2", *slurm.acc_words(worker=UNTIL_TOLD), stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, env={**os.environ, "HOME": slurm.folder.name,
                                                          "SLURM_CONF": f"{slurm.slurm}/slurm.conf"})
        started = {step.stdout.readline(), step.stdout.readline()}
        assert all(" restart 0" in line for line in started), started
        number = re.search(r"run (\d+)\.", started.pop())[1]
        assert slurm.run("scancel", number).returncode == 0
        _, said = step.communicate(timeout=60)
        assert step.returncode == 143, said
        # srun may say it of both at once.
        ends = re.findall(r"srun: error: (\S+): tasks? \S+: (.*)", said)
        assert {how for _, how in ends} == {"Exited with exit code 143"}, said
        assert sorted(node for node, _ in ends) in (["node0", "node1"], ["node[0-1]"]), said


@case
def a_killed_node_is_named(acc):
    with Slurm(acc, 2) as slurm:
        job = slurm.submit(f"srun {' '.join(slurm.acc_words(worker=UNTIL_TOLD))}", "echo step ended with $?",
                           flags=("-N2", "--no-requeue"))
        job.until_says("rank 0 on node0: run", "rank 1 on node1: run")
        slurm.node("crash", 1)
        said = job.until_says("the job needs all its nodes", limit=5)
        assert re.search(r"acc: node node1 \(10\.77\.0\.11, pid \d+\) was lost: its connection closed; ", said), said
        job.until_says("node0: task 0: Exited with exit code 75")


@case
def pytorch_trains_on_three_nodes(acc):
    """PyTorch's DDP; all ranks have the same weights in the end."""
    python = os.environ.get("ACC_PEER_PYTHON")
    if not python:
        skip("ACC_PEER_PYTHON names no Python with the peers")
    with Slurm(acc, 3) as slurm:
        done = slurm.run("srun", "-N3", acc, "launch", "--cpu", "--python", python, str(WORKERS / "ddp.py"),
                         env={"OMP_NUM_THREADS": "1"})
        assert done.returncode == 0, done
        assert sorted(done.stdout.splitlines()) == [f"attempt 0 rank {rank} of 3 trained" for rank in range(3)], done


@case
def the_self_test_passes_on_two_nodes(acc):
    """With LibTorch: collectives and a training of two nodes, with the right results; acc starts them, or srun itself."""
    program = os.path.join(os.path.dirname(acc), "acc-selftest")
    if not os.path.exists(program):
        skip("built without LibTorch")
    with Slurm(acc, 2) as slurm:
        one = {"OMP_NUM_THREADS": "1"}
        pages = os.path.join(slurm.folder.name, "$SLURMD_NODENAME.html")
        done = slurm.run("srun", "-N2", "sh", "-c", f"{acc} test --cpu --nproc_per_node 2 --html {pages}", env=one)
        assert done.returncode == 0, done
        # The first node writes the page, of all.
        page = pathlib.Path(slurm.folder.name, "node0.html").read_text()
        assert "acc test: 4 processes on 2 hosts" in page and page.count('class="border"') == 2, page
        assert not os.path.exists(os.path.join(slurm.folder.name, "node1.html"))
        direct = slurm.run("srun", "-N2", "--ntasks-per-node=2", program, "--expect-processes", "4", env=one)
        assert direct.returncode == 0, direct
        assert "4 processes" in direct.stdout, direct


if __name__ == "__main__":
    run_cases()
