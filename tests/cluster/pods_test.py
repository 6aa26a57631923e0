# SPDX-License-Identifier: Apache-2.0
"""Pods of Kubernetes, played by nodes with the variables and names that pods have. Usage: see run_cases()."""

import json
import os
import signal
import subprocess
import sys

from cluster import WORKERS, Cluster, case, run_cases

IN_A_POD = {"KUBERNETES_SERVICE_HOST": "10.77.0.1"}


class Pods(Cluster):
    """Each node is a pod; `train-0` and `train-1` of a headless Service `train`, once name_pod() was called."""

    def name_pod(self, index):
        for pod in range(self.count):
            self.add_name(pod, f"10.77.0.{10 + index}", f"train-{index}.train.default.svc.cluster.local train-{index}")

    def start(self, index, *flags, worker=(WORKERS / "meet.py",), **variables):
        """acc launch as the command of the container of pod `index`."""
        return self.start_words(index, ["launch", "--python", sys.executable, *flags, *map(str, worker)], **variables)

    def start_words(self, index, words, **variables):
        words = [self.acc, *words]
        return self.on_node(index, "unshare", "--uts", "sh", "-c", f'hostname train-{index}; exec "$@"', "sh", *words,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            env={**os.environ, **IN_A_POD, "HOME": self.folder.name, **variables})


def ended(pods):
    """What the pods printed, in order."""
    done = [pod.communicate(timeout=60) + (pod.returncode,) for pod in pods]
    assert all(code == 0 for _, _, code in done), done
    return [line for out, _, _ in done for line in sorted(out.splitlines())]


@case
def pods_of_an_indexed_job_are_one_job(acc):
    with Pods(acc, 2) as pods:
        unnumbered = pods.start(1, JOB_COMPLETION_INDEX="1")
        _, said = unnumbered.communicate(timeout=30)
        assert unnumbered.returncode == 2, said
        assert said.startswith("acc: JOB_COMPLETION_INDEX=1 found, the number of pods is not ") and said.count("\n") == 1, said
        # The name of a pod comes with it: the second waits for that of the first.
        pods.name_pod(1)
        flags = ["--nnodes", "2", "--nproc-per-node", "2", "-v"]
        second = pods.start(1, *flags, JOB_COMPLETION_INDEX="1")
        seen = ""
        while "cannot resolve the name" not in seen:
            line = second.stderr.readline()
            assert line, seen
            seen += line
        pods.name_pod(0)
        first = pods.start(0, *flags, JOB_COMPLETION_INDEX="0")
        assert ended([first, second]) == [f"rank {r} of 4, local {r % 2}, on train-{r // 2}" for r in range(4)]


# Leaves an orphan that ends at once, waits until process 1 has reaped it, and asks process 1 to end, as a kubelet does.
ASKS_TO_END = """\
orphan=$(setsid --fork sh -c 'echo $$')
while test -e /proc/$orphan; do sleep 0.05; done
echo "process 1 is $(tr '\\0' ' ' < /proc/1/cmdline)"
kill -TERM 1
sleep 1000
"""


@case
def acc_is_process_1_of_a_pod(acc):
    with Pods(acc, 1) as pods:
        pod = pods.on_node(0, "unshare", "--pid", "--fork", "--mount-proc", acc, "launch", "--cpu", "--num_processes", "1", "--no_python",
                           "sh", "-c", ASKS_TO_END, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                           env={**os.environ, **IN_A_POD, "HOME": pods.folder.name})
        out, err = pod.communicate(timeout=60)
        assert out.startswith(f"process 1 is {acc} launch "), (out, err)
        assert pod.returncode == 143 and "acc: SIGTERM received, stopping 1 worker (grace 25 s)\n" in err, (pod.returncode, err)


@case
def pods_of_a_printed_manifest_are_one_job(acc):
    with Pods(acc, 2) as pods:
        for pod in range(2):
            pods.name_pod(pod)
        flags = ["--nnodes", "2", "--nproc-per-node", "2", "--cpu", "--python", sys.executable]
        made = subprocess.run([acc, "launch", "--print-script", "k8s", *flags, str(WORKERS / "meet.py")], text=True, check=True,
                              capture_output=True, env={**os.environ, "HOME": pods.folder.name}).stdout
        # A flow sequence of YAML that is JSON, too.
        [command] = [line.partition("command: ")[2] for line in made.splitlines() if "command: " in line]
        name, *words = json.loads(command)
        assert name == "acc", command
        both = [pods.start_words(i, words, JOB_COMPLETION_INDEX=str(i)) for i in range(2)]
        assert ended(both) == [f"rank {r} of 4, local {r % 2}, on train-{r // 2}" for r in range(4)]


@case
def pods_that_are_told_everything_are_one_job(acc):
    with Pods(acc, 2) as pods:
        pods.name_pod(0)
        for told in [
                # A LeaderWorkerSet.
                lambda i: {"LWS_LEADER_ADDRESS": "train-0.train.default.svc.cluster.local", "LWS_GROUP_SIZE": "2",
                           "LWS_WORKER_INDEX": str(i)},
                # A TrainJob of Kubeflow.
                lambda i: {"PET_NNODES": "2", "PET_NPROC_PER_NODE": "1", "PET_NODE_RANK": str(i), "PET_MASTER_PORT": "29500",
                           "PET_MASTER_ADDR": "train-0.train.default.svc.cluster.local", "JOB_COMPLETION_INDEX": str(i)}]:
            both = [pods.start(i, **told(i)) for i in range(2)]
            assert ended(both) == ["rank 0 of 2, local 0, on train-0", "rank 1 of 2, local 0, on train-1"]


@case
def an_evicted_pod_ends_the_job_with_one_code(acc):
    """Of two pods one gets SIGTERM; the other one has to save and to end too."""
    with Pods(acc, 2) as pods:
        pods.name_pod(0)
        pods.name_pod(1)
        worker = [WORKERS / "until_told.py", "--until", "SIGTERM"]
        for flags, code in [([], 143), (["--requeue-on-preemption"], 75)]:
            both = [pods.start(i, "--nnodes", "2", *flags, worker=worker, JOB_COMPLETION_INDEX=str(i), JOBSET_NAME="train",
                               JOBSET_RESTART_ATTEMPT="3") for i in range(2)]
            for i in range(2):
                assert both[i].stdout.readline() == f"rank {i} on train-{i}: run train.3, restart 0\n"
            os.kill(pods.agent_pids(1)[0], signal.SIGTERM)
            done = [pod.communicate(timeout=60) for pod in both]
            assert [pod.returncode for pod in both] == [code, code], done
            assert [out for out, _ in done] == [f"rank {i} on train-{i}: got SIGTERM\nrank {i} on train-{i}: saved\n"
                                                for i in range(2)], done
            assert "acc: SIGTERM received, stopping 1 worker (grace 25 s)\n" in done[1][1], done


if __name__ == "__main__":
    run_cases()
