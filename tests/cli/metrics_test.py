#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""metrics_test.py ACC DASHBOARD: what `acc metrics` says of a running job is what Prometheus then has, and what the dashboard shows."""

import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import urllib.parse
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))
from ports import free_port

ACC, DASHBOARD = (pathlib.Path(argument).resolve() for argument in sys.argv[1:])
PACKAGE = pathlib.Path(__file__).resolve().parents[2] / "scripts/package"

WORKER = """
import acc, os, sys, time
with acc.section("data"):
    while time.process_time() < 0.05:  # /proc counts in ticks of 10 ms
        pass
for _ in range(3):
    acc.step(samples=8, tokens=100, loss=0.5)
print("rank", os.environ["RANK"], flush=True)
open(sys.argv[1]).read()
"""


def need(program):
    path = shutil.which(program)
    if path is None:
        print(f"skipped: {program} is missing (Debian: prometheus)")
        sys.exit(77)
    return path


def fetch(url, **headers):
    with urllib.request.urlopen(urllib.request.Request(url, headers=headers)) as answer:
        return answer.headers["Content-Type"], answer.read().decode()


def start_job(folder, script, *arguments):
    job = subprocess.Popen([ACC, "run", "--standalone", "--nproc-per-node", "2", "--python", sys.executable, script, *arguments],
                           env={**os.environ, "PYTHONPATH": str(PACKAGE), "PYTHONDONTWRITEBYTECODE": "1"},
                           stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    assert {job.stdout.readline() for _ in range(2)} == {"rank 0\n", "rank 1\n"}
    return job


def start_metrics(*arguments, **options):
    """The exporter and the address that it names."""
    exporter = subprocess.Popen([ACC, "metrics", *arguments], stderr=subprocess.PIPE, text=True, **options)
    line = exporter.stderr.readline()
    return exporter, re.fullmatch(r"acc: the metrics are at (http://\S+)\n", line)[1]


def end(process):
    process.terminate()
    assert process.wait() in (0, 143), process.returncode


def of_ranks(text, job_id, name):
    """The values of a metric by rank. For root the jobs of others are there, too."""
    found = re.findall(rf'^{name}{{job="{job_id}",rank="(\d+)",node="{os.uname().nodename}"}} (\S+)$', text, re.M)
    return {int(rank): float(value) for rank, value in found}


def prometheus_has_it(folder, url, job_id):
    address = f"127.0.0.1:{free_port()}"
    (folder / "prometheus.yml").write_text(json.dumps({  # JSON is YAML
        "global": {"scrape_interval": "1s"},
        "scrape_configs": [{"job_name": "acc", "honor_labels": True,
                            "static_configs": [{"targets": [urllib.parse.urlsplit(url).netloc]}]}]}))
    server = subprocess.Popen([need("prometheus"), f"--config.file={folder}/prometheus.yml", f"--web.listen-address={address}",
                               f"--storage.tsdb.path={folder}/data"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        for line in server.stderr:
            if "Server is ready" in line:
                break
        query = urllib.parse.quote('acc_rank_step{job="%s"}' % job_id)
        result = []
        while not result and server.poll() is None:
            result = json.loads(fetch(f"http://{address}/api/v1/query?query={query}")[1])["data"]["result"]
        assert {(one["metric"]["rank"], one["value"][1]) for one in result} == {("0", "3"), ("1", "3")}, result
        described = json.loads(fetch(f"http://{address}/api/v1/targets/metadata?metric=acc_rank_memory_bytes")[1])["data"]
        assert [(one["type"], one["unit"]) for one in described] == [("gauge", "bytes")], described
    finally:
        server.terminate()
        server.communicate()


def promtool_finds_nothing(text):
    checked = subprocess.run([need("promtool"), "check", "metrics"], input=text, capture_output=True, text=True, check=False)
    assert (checked.returncode, checked.stdout, checked.stderr) == (0, "", ""), checked


def write_twice(name, file):
    """A writer that was told this name, and has written `file` twice."""
    writer = subprocess.Popen([ACC, "metrics", "--textfile", name, "--interval", "1"])
    seen = set()
    while len(seen) < 2 and writer.poll() is None:
        if file.exists():
            seen.add(file.stat().st_ino)
            assert "acc_jobs{" in file.read_text()
    return writer


def a_text_file_is_whole_and_goes_with_its_writer(folder, job_id):
    file = folder / "acc.prom"
    subprocess.run([ACC, "metrics", "--textfile", file], check=True)
    promtool_finds_nothing(file.read_text())
    assert f'job="{job_id}"' in file.read_text()
    file.unlink()
    end(write_twice(file, file))
    assert not file.exists()


def a_link_to_the_text_file_stays_and_the_file_goes(folder):
    link, file = folder / "link.prom", folder / "linked.prom"
    link.symlink_to(file.name)
    end(write_twice(link, file))
    assert link.is_symlink() and not file.exists()


def what_its_caller_ignores_stays_ignored():
    exporter, url = start_metrics("--listen", "127.0.0.1:0", preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    try:
        exporter.send_signal(signal.SIGHUP)
        assert "acc_jobs{" in fetch(url)[1]
    finally:
        end(exporter)


def what_is_wrong_is_one_line(address):
    def refusal(*arguments):
        done = subprocess.run([ACC, "metrics", *arguments], capture_output=True, text=True, check=False)
        assert done.returncode and not done.stdout and done.stderr.count("\n") == 1, done
        return done.stderr

    assert refusal("--listen", address).startswith(f"acc: {address}: cannot listen: Address already in use")
    assert "'node0:80' is not an IP address with a port (as in 127.0.0.1:9499" in refusal("--listen", "node0:80")
    assert "192.0.2.1:80: cannot listen: Cannot assign requested address" in refusal("--listen", "192.0.2.1:80")
    assert refusal("--textfile", "/proc/acc.prom").startswith("acc: /proc/acc.prom: cannot be written: ")
    assert refusal("--textfile", "nowhere/acc.prom") == "acc: nowhere/acc.prom: its folder does not exist\n"
    assert "--textfile" in refusal("--interval", "5")


def the_dashboard_shows_what_there_is(text):
    known = set(re.findall(r"^# TYPE (\S+)", text, re.M))
    # Of what this job has not.
    known |= {"acc_rank_gpu_memory_bytes", "acc_rank_gpu_use_ratio"}
    panels = json.loads(DASHBOARD.read_text())["panels"]
    shown = {name for panel in panels for target in panel["targets"] for name in re.findall(r"\bacc_\w+", target["expr"])}
    assert shown and shown <= known, shown - known


def main():
    need("prometheus")
    with tempfile.TemporaryDirectory(prefix="acc-metrics-") as name:
        folder = pathlib.Path(name)
        # No other job of this user is seen, unless that is root.
        runtime = folder / "runtime"
        runtime.mkdir(mode=0o700)
        os.environ["XDG_RUNTIME_DIR"] = str(runtime)
        (folder / "worker.py").write_text(WORKER)
        os.mkfifo(folder / "pipe")
        job = start_job(folder, folder / "worker.py", folder / "pipe")
        exporter, url = start_metrics("--listen", "127.0.0.1:0")
        try:
            job_id = f"worker-{job.pid}"
            kind, text = fetch(url)
            assert kind == "text/plain; version=0.0.4; charset=utf-8", kind
            promtool_finds_nothing(text)
            assert of_ranks(text, job_id, "acc_rank_step") == {0: 3, 1: 3}, text
            assert of_ranks(text, job_id, "acc_rank_loss") == {0: 0.5, 1: 0.5}, text
            assert of_ranks(text, job_id, "acc_rank_tokens_total") == {0: 300, 1: 300}, text
            assert of_ranks(text, job_id, "acc_rank_up") == {0: 1, 1: 1}, text
            assert all(value > 0 for value in of_ranks(text, job_id, "acc_rank_cpu_seconds_total").values()), text
            kind, text_open = fetch(url, Accept="application/openmetrics-text; version=1.0.0")
            assert kind.startswith("application/openmetrics-text; version=1.0.0") and text_open.endswith("# EOF\n"), kind
            prometheus_has_it(folder, url, job_id)
            the_dashboard_shows_what_there_is(text)
            a_text_file_is_whole_and_goes_with_its_writer(folder, job_id)
            a_link_to_the_text_file_stays_and_the_file_goes(folder)
            what_its_caller_ignores_stays_ignored()
            what_is_wrong_is_one_line(urllib.parse.urlsplit(url).netloc)
        finally:
            end(exporter)
            end(job)


if __name__ == "__main__":
    main()
