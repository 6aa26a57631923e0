# SPDX-License-Identifier: Apache-2.0
"""system_calls_test.py ACC: bounds the system calls and page faults that acc needs to start a job of /bin/true and to end with
it. Times would depend on what else the machine does.

Whoever exceeds a bound has added work to every start, or to that of every worker. ACC_TEST_SHOW=1 prints all counts. They depend
on these properties of the machine:
- strace, which must be allowed to trace (skipped otherwise);
- the C library and the libraries that acc is linked to: loading them is counted, too;
- the size of the kernel's pages: with pages larger than 4 KiB there are fewer faults;
- the session's /run/user/UID: where it is there, acc makes its folder in it, not in /dev/shm, and looks at one more;
- other jobs of acc, at which it looks when it starts: so the test runs alone (RUN_SERIAL);
- not the number of CPUs: acc gets two, or the only one.
On Debian 12 (glibc 2.36, x86_64) at least 3 % of each bound is left for another C library and kernel."""
import collections
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile

ACC = sys.argv[1]
FEW, MANY = 2, 10
# Of the launcher's own processes, and of workers before they execute their program.
MAX_CALLS = {"before the first fork": 131, "after it, without workers": 207, "for each worker": 48}
if os.path.isdir(f"/run/user/{os.getuid()}"):
    MAX_CALLS["before the first fork"] += 7
MAX_PAGE_FAULTS = {"without workers": 340, "for each worker": 6}


def command(workers):
    return [ACC, "run", "--standalone", "--no-python", f"--nproc-per-node={workers}", "/bin/true"]


def run(line):
    subprocess.run(line, env={"PATH": os.environ["PATH"]}, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL, check=True)


def calls(workers):
    """The system calls by name, before the first fork and after it: of three runs the one with the fewest, because a loaded
    machine wakes acc more often."""
    return min((traced_calls(workers) for _ in range(3)), key=lambda phases: sum(phase.total() for phase in phases))


def traced_calls(workers):
    with tempfile.NamedTemporaryFile("r") as trace:
        run(["strace", "-f", "-qq", "-o", trace.name, *command(workers)])
        before, after, forked, executed = collections.Counter(), collections.Counter(), False, set()
        for line in trace:
            call = re.match(r"(\d+) +(\w+)\(", line)  # not the second half of a call, nor a signal or an end
            if not call or call[1] in executed:
                continue
            (after if forked else before)[call[2]] += 1
            forked |= call[2] in ("clone", "clone3", "fork", "vfork")
            if call[2] == "execve" and "/bin/true\", [" in line:
                executed.add(call[1])
        return before, after


def page_faults(workers):
    def of_children():
        return resource.getrusage(resource.RUSAGE_CHILDREN).ru_minflt

    def faults(line):
        began = of_children()
        run(line)
        return of_children() - began

    return min(faults(command(workers)) for _ in range(5)) - workers * min(faults(["/bin/true"]) for _ in range(5))


def main():
    if not shutil.which("strace") or subprocess.run(["strace", "-qq", "-o", "/dev/null", "/bin/true"], check=False,
                                                    stderr=subprocess.DEVNULL).returncode:
        print("skipped: no strace, or it may not trace")
        sys.exit(77)
    # acc asks the kernel about each CPU.
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:2])
    (before, few), (_, many) = calls(FEW), calls(MANY)
    each = collections.Counter({name: (many[name] - few[name]) / (MANY - FEW) for name in many})
    without = collections.Counter({name: few[name] - FEW * each[name] for name in few})
    faults, faults_of_many = page_faults(FEW), page_faults(MANY)
    faults_each = (faults_of_many - faults) / (MANY - FEW)
    counters = (before, without, each)
    counts = [(f"system calls {phase}", counter.total(), MAX_CALLS[phase]) for phase, counter in zip(MAX_CALLS, counters)]
    counts += [(f"page faults {phase}", count, MAX_PAGE_FAULTS[phase])
               for phase, count in zip(MAX_PAGE_FAULTS, (faults - FEW * faults_each, faults_each))]
    for what, count, limit in counts:
        print(f"{count:.1f} {what}, at most {limit}")
    if os.environ.get("ACC_TEST_SHOW"):
        print(*(counter.most_common() for counter in counters), sep="\n")
    sys.exit(any(count > limit for _, count, limit in counts))


main()
