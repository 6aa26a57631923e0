#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`acc test --html`, with other programs in the place of acc-selftest: what the page tells, who writes it, and what is refused.
Usage: test_page_test.py ACC"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))
from ports import free_port  # noqa: E402

SIMULATED = pathlib.Path(__file__).parents[2] / "scripts/simulated_selftest.py"
# Rank 0 waits until it is stopped; the other one says why it ends.
FAILS = """#!/bin/sh
if [ "$RANK" = 0 ]; then exec sleep 60; fi
echo "acc-selftest: 'links' did not end <within> 60 s" >&2
exit 3
"""


class Folder:
    """A folder with acc and a program that it takes for acc-selftest."""

    def __init__(self, acc, path):
        self.path = pathlib.Path(path)
        self.acc = shutil.copy(acc, path)

    def selftest(self, text):
        program = self.path / "acc-selftest"
        program.write_text(text)
        program.chmod(0o755)

    def start(self, *flags, **variables):
        return subprocess.Popen([self.acc, "test", "--cpu", *flags], cwd=self.path, text=True, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                env={"PATH": os.environ["PATH"], "HOME": str(self.path), **variables})

    def test(self, *flags, **variables):
        process = self.start(*flags, **variables)
        out, err = process.communicate(timeout=60)
        return subprocess.CompletedProcess(flags, process.returncode, out, err)

    def page(self, name="page.html"):
        return (self.path / name).read_text()

    def names(self):
        return sorted(entry.name for entry in self.path.iterdir() if entry.name not in ("acc", "acc-selftest"))


def shows_what_was_measured(folder):
    folder.selftest(SIMULATED.read_text())
    (folder.path / "page.html").write_text("an older page")
    done = folder.test("--html", "page.html", "--mixed_precision", "bf16")
    assert (done.returncode, done.stdout) == (0, ""), done
    page = folder.page()
    assert page.startswith("<!DOCTYPE html>") and page.endswith("</html>\n")
    for text in ("<h1>acc test: 64 processes on 8 hosts</h1>", "Passed: 17 of 17 checks.", "gpu007", "acc 0.", "torch 2.11.0",
                 "ranks 12 and 41 have a slow connection", "rank 12 – rank 41: ", "level memory",
                 "<td>mixed_precision</td><td>bf16</td>"):
        assert text in page, text
    assert page.count('class="frame"') == 2, "the slow link is not framed in both matrices"
    assert folder.names() == ["page.html"], folder.names()
    # Of many ranks those of a host share a row.
    done = folder.test("--html=pages/many.html", SIMULATED_RANKS="128")
    assert done.returncode == 0 and "ranks 120 to 127" in folder.page("pages/many.html"), done


def a_test_without_results_has_not_passed(folder):
    folder.selftest("#!/bin/sh\nexit 0\n")
    done = folder.test("--html", "nothing.html")
    assert done.returncode == 1 and "the ranks ended without results" in done.stderr, done
    assert "Failed: the ranks ended without results." in folder.page("nothing.html")
    done = folder.test("--html", "--json")
    assert done.returncode == 2 and "--html --json: needs the name of a file" in done.stderr, done
    assert "--json" not in folder.names(), folder.names()


def names_the_rank_that_failed(folder):
    folder.selftest(FAILS)
    done = folder.test("--num_processes", "2", "--html", "failed.html")
    assert done.returncode == 3, done
    page = folder.page("failed.html")
    assert "Failed: rank 1 on " in page and ": &#39;links&#39; did not end &lt;within&gt; 60 s</p>" in page, page
    assert "2 processes on 1 host" in page and "<h2>Links</h2>" not in page, page


def on_two_nodes(folder):
    """The exit codes of two nodes with a process each, of which each is to write a page of its own."""
    flags = ["--num_machines", "2", "--num_processes", "2", "--main_process_ip", "127.0.0.1", "--main_process_port",
             str(free_port()), "--html"]
    nodes = [folder.start("--machine_rank", str(rank), *flags, f"node{rank}.html", SIMULATED_RANKS="2", SIMULATED_LOCAL="1")
             for rank in range(2)]
    for node in nodes:
        node.communicate(timeout=60)
    return [node.returncode for node in nodes]


def is_written_by_the_first_node(folder):
    folder.selftest(SIMULATED.read_text())
    assert on_two_nodes(folder) == [0, 0]
    assert folder.names() == ["node0.html"], folder.names()
    assert "acc test: 2 processes on 2 hosts" in folder.page("node0.html")
    # It also tells of a failure on the other one.
    folder.selftest(FAILS)
    assert on_two_nodes(folder) == [3, 3]
    assert folder.names() == ["node0.html"], folder.names()
    assert "Failed: rank 1 on " in folder.page("node0.html") and "&#39;links&#39; did not end" in folder.page("node0.html")


def is_refused_before_the_test(folder):
    folder.selftest("#!/bin/sh\necho started\n")
    (folder.path / "taken").mkdir(exist_ok=True)
    for flags, code, text in [(["--html", "taken"], 1, "acc: taken: cannot be replaced: Is a directory\n"),
                              (["--html", "acc/page.html"], 1, "acc: acc: cannot be created: Not a directory\n"),
                              (["--html"], 2, "acc: --html: expected one argument\n"),
                              (["--html", "x.html", "--nodes"], 2, "acc: --html x.html: shows the training test, not that of "
                               "--nodes (leave one of them out)\n")]:
        done = folder.test(*flags)
        assert (done.returncode, done.stdout, done.stderr) == (code, "", text), done
    done = folder.test("--html", "x.html", "--dry_run")
    assert done.returncode == 0 and "x.html" not in folder.names(), done


def tells_what_a_test_without_libacc_found(folder):
    (folder.path / "acc-selftest").unlink()
    bare = folder.path / "python"
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S "$@"\n')
    bare.chmod(0o755)
    done = folder.test("--num_processes", "2", "--python", str(bare), "--html", "plain.html")
    assert done.returncode == 0, done
    page = folder.page("plain.html")
    assert "Passed: 1 of 1 check." in page and "<h2>Not tested</h2>" in page and "acc-selftest is not installed" in page, page


def main(acc):
    for case in (shows_what_was_measured, names_the_rank_that_failed, a_test_without_results_has_not_passed, is_written_by_the_first_node, is_refused_before_the_test,
                 tells_what_a_test_without_libacc_found):
        with tempfile.TemporaryDirectory(prefix="acc-page-") as path:
            folder = Folder(acc, path)
            folder.selftest("")
            case(folder)


if __name__ == "__main__":
    main(os.path.abspath(sys.argv[1]))
