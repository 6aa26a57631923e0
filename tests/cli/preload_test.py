#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Workers of `acc launch --preload` are what they would be without it.

usage: preload_test.py ACC [CASE ... | --same CASE ...]
"""
import contextlib
import json
import os
import pathlib
import re
import select
import shutil
import subprocess
import sys
import tempfile
import time

TIMEOUT = 100  # seconds; only a failing test waits so long
ACC = pathlib.Path(sys.argv[1]).resolve()

# Programs of one worker, that are run with and without --preload: what they write and their exit codes are the same.
SCRIPTS = {
    "what a script finds": """
        import os, sys, __main__
        assert __main__.__dict__ is globals()
        print(list(globals()), __name__, __file__, __spec__, __loader__.__class__, __builtins__)
        print(sys.argv, sys.orig_argv, sys.path[0], sys.flags, os.getcwd(), sys.executable)
        print(open("/proc/self/cmdline").read(), sorted(os.listdir("/proc/self/fd")))
        print(sorted(os.environ), os.environ["ODD"], os.environb[b"BYTES"], os.getenv("RANK"))
        print(open("/proc/self/environ", "rb").read().count(b"ODD="), os.getsid(0) == os.getpid())
        print(sys.stdin.read(), sys.stdout.line_buffering, sys.stderr.line_buffering, sys.stdout.encoding)
        print(sys.stdin.seek(0), sys.stdin.readline(), sys.stdin.buffer.raw)
        print(sys.stdout.seekable(), sys.stderr.seekable(), sys.stdout.buffer.raw)
        import resource, signal
        print(resource.getrlimit(resource.RLIMIT_NOFILE), os.umask(0), signal.getsignal(signal.SIGINT))
        import ctypes
        death = ctypes.c_int()
        ctypes.CDLL(None).prctl(2, ctypes.byref(death))
        print("signal when acc ends:", death.value, os.sched_getaffinity(0))
        """,
    "an exception": "def fail():\n    raise ValueError('no')\ntry:\n    1 / 0\nexcept Exception:\n    fail()",
    "an exception with a hook": "import sys\nsys.excepthook = lambda *what: print('hook', what[:2])\nraise KeyError(1)",
    "a syntax error": "print('never')\ndef f(:",
    "a text as exit code": "raise SystemExit('a text')",
    "Ctrl-C": "import os, signal\nos.kill(os.getpid(), signal.SIGINT)\nsignal.pause()",
    "the end of the process": "import os\nprint('lost in a buffer')\nos._exit(7)",
    "an exit handler, after threads": """
        import atexit, sys, threading
        atexit.register(print, "at exit")
        go = threading.Event()
        threading.Thread(target=lambda: (go.wait(), print("thread"))).start()
        atexit.register(lambda: print(len(threading.enumerate()), "thread left"))
        go.set()
        sys.exit(3)
        """,
    "processes of every kind": """
        import multiprocessing
        class Thing:
            def __init__(self, text): self.text = text
        def work(queue, thing): queue.put((thing.text, __name__))
        if __name__ == "__main__":
            for kind in ("fork", "spawn", "forkserver"):
                context = multiprocessing.get_context(kind)
                queue = context.Queue()
                process = context.Process(target=work, args=(queue, Thing(kind)))
                process.start()
                print(queue.get())
                process.join()
                print(process.exitcode)
        """,
    "output of every kind": """
        import ctypes, subprocess, sys
        sys.stdout.write("python "), sys.stdout.flush()
        ctypes.CDLL(None).puts(b"C"), ctypes.CDLL(None).fflush(None)
        subprocess.run(["echo", "child"])
        print("to stderr", file=sys.stderr)
        """,
}  # fmt: skip
# What is imported in each worker, or once, prints; and counts how often.
MODULE = "import os, sys\nprint('imported', flush=True)\nprint('with an error', file=sys.stderr)\nopen('imports', 'a').write('x')\n"


def text_of(script):
    lines = script.strip("\n").splitlines()
    indent = len(lines[0]) - len(lines[0].lstrip())
    return "import module\n" + "\n".join(line[indent:] for line in lines) + "\n"


def run(words, input="", **variables):
    """acc launch with these words: the exit code, and the two outputs."""
    environment = {"PATH": os.environ["PATH"], "HOME": os.getcwd(), "ODD": "a\nb='c'", **variables}
    environment = {os.fsencode(name): os.fsencode(value) for name, value in environment.items()} | {b"BYTES": b"\xff\xfe"}
    with tempfile.TemporaryFile() as file:
        file.write(input.encode())
        file.seek(0)
        done = subprocess.run([ACC, "launch", "--cpu", "--python", sys.executable, *words], env=environment, stdin=file,
                              capture_output=True, text=True, timeout=TIMEOUT)  # fmt: skip
    return done.returncode, done.stdout, done.stderr


def without_chance(text):
    return re.sub(r"(pid |time: )[^,)\n]+", r"\1...", text)


def compare(name, program, input="", modules="json,module"):
    cold = run(["--num_processes", "1", *program], input)
    warm = run(["--num_processes", "1", "--preload", modules, *program], input)
    cold, warm = [tuple(map(without_chance, map(str, ran))) for ran in (cold, warm)]
    assert cold == warm, f"{name}:\n{cold}\n{warm}"
    assert ("imported\n" in cold[1]) == ("module" in modules), cold


def workers_are_the_same():
    for name, script in SCRIPTS.items():
        pathlib.Path("a script.py").write_text(text_of(script))
        # What a script that cannot be compiled does not import writes nothing.
        modules = "json" if "syntax" in name else "json,module"
        compare(name, ["a script.py", "--flag", "two words"], "text for stdin", modules)


def programs_of_every_kind_are_the_same():
    text = text_of("import sys\nprint(__name__, __file__, __package__, __spec__ and __spec__.name, sys.argv, sys.path[:2])\n1 / 0")
    for folder in ("package", "folder", "elsewhere"):
        pathlib.Path(folder).mkdir()
    pathlib.Path("package/part.py").write_text(text)
    pathlib.Path("folder/__main__.py").write_text(text)
    shutil.copy("module.py", "folder/module.py")
    pathlib.Path("elsewhere/link.py").symlink_to("../package/part.py")
    shutil.copy("module.py", "package/module.py")
    shutil.make_archive("archive", "zip", "folder")
    compare("module", ["-m", "package.part", "x"])
    compare("folder", ["folder", "x"])
    compare("archive", ["archive.zip", "x"])
    compare("link", ["./elsewhere/link.py", "x"])
    compare("no such module", ["-m", "package.nothing"], modules="json")


def modules_are_imported_once():
    pathlib.Path("script.py").write_text(
        "import module, os, sys\n"
        "print('attempt', os.environ['TORCHELASTIC_RESTART_COUNT'], 'rank', os.environ['RANK'])\n"
        "sys.exit(5 if os.environ['TORCHELASTIC_RESTART_COUNT'] != '2' else 0)\n")  # fmt: skip
    flags = ["--num_processes", "2", "--max-restarts", "2"]
    code, out, _ = run([*flags, "script.py"], ACC_PRELOAD="module")
    assert (code, pathlib.Path("imports").read_text()) == (0, "x"), (code, out)
    assert "attempt 2 rank 0\n" in out and "attempt 2 rank 1\n" in out, out
    # Of the file, too, and of a worker's output the imports are a part.
    pathlib.Path("job.yaml").write_text("distributed_type: MULTI_CPU\nnum_processes: 2\npreload: module\n")
    flags = ["--max-restarts", "2", "--log-dir", "logs", "--redirects", "3"]
    code, out, _ = run(["--config_file", "job.yaml", *flags, "script.py"])
    assert (code, pathlib.Path("imports").read_text()) == (0, "xx"), (code, out)
    logs = sorted(pathlib.Path("logs").glob("*/attempt_2/*/stdout.log"))
    assert [log.read_text() for log in logs] == [f"imported\nattempt 2 rank {rank}\n" for rank in (0, 1)], logs


def chance_differs():
    pathlib.Path("script.py").write_text(
        "import multiprocessing, random, tempfile, uuid\n"
        "print(random.random(), uuid.uuid4(), tempfile.mktemp(), multiprocessing.current_process().authkey)\n")  # fmt: skip
    _, out, _ = run(["--num_processes", "4", "--preload", "random,tempfile,uuid,multiprocessing.process", "script.py"])
    for values in zip(*map(str.split, out.splitlines())):
        assert len(set(values)) == 4, out


def seeds_are_kept():
    pathlib.Path("seeded.py").write_text("import random\nrandom.seed(42)\nfirst = random.random()\n")
    pathlib.Path("script.py").write_text("import random, seeded\nprint(seeded.first, random.random(), random.random())\n")
    cold = run(["--num_processes", "2", "script.py"])
    assert run(["--num_processes", "2", "--preload", "seeded", "script.py"]) == cold and len(set(cold[1].splitlines())) == 1, cold


def an_import_that_hangs_is_no_secret():
    pathlib.Path("hangs.py").write_text("import signal\nsignal.pause()\n")
    pathlib.Path("script.py").write_text("import hangs\n")
    flags = ["--num_processes", "2", "--hang-timeout", "1", "--on-hang", "kill"]
    code, _, err = run([*flags, "--preload", "json,hangs", "script.py"])
    assert code == 124 and err.startswith("acc: warning: importing hangs hangs: workers start without --preload\n"), (code, err)


def an_import_that_takes_long_is_shown():
    """acc ps names the module while the workers wait for it."""
    os.mkdir("run", 0o700)
    for fifo in ("begun", "go"):
        os.mkfifo(fifo)
    for file in ("slow.py", "script.py"):
        pathlib.Path(file).write_text("open('begun', 'w').close()\nopen('go').close()\n")
    environment = {"PATH": os.environ["PATH"], "HOME": os.getcwd(), "XDG_RUNTIME_DIR": os.path.abspath("run")}
    command = [ACC, "launch", "--cpu", "--python", sys.executable, "--num_processes", "1", "--preload", "json,slow", "script.py"]
    job = subprocess.Popen(command, env=environment)

    def shown(*words):
        open("begun").close()
        return subprocess.run([ACC, "ps", *words, str(job.pid)], env=environment, capture_output=True, text=True, check=True,
                              timeout=TIMEOUT).stdout  # fmt: skip

    try:
        while_imported = shown()
        assert re.search(r"^  importing slow for \d+s \(--preload, pid \d+\)$", while_imported, re.M), while_imported
        open("go", "w").close()
        [later] = json.loads(shown("--json"))
        assert later["importing"] is None and len(later["ranks"]) == 1, later
        open("go", "w").close()
        assert job.wait(TIMEOUT) == 0
    finally:
        job.kill()
        job.wait()


def a_module_may_ignore_the_end_of_children():
    pathlib.Path("quiet.py").write_text("import signal\nsignal.signal(signal.SIGCHLD, signal.SIG_IGN)\n")
    pathlib.Path("script.py").write_text("import quiet, signal\nprint(signal.getsignal(signal.SIGCHLD))\n")
    cold = run(["--num_processes", "2", "script.py"])
    assert run(["--num_processes", "2", "--preload", "quiet", "script.py"]) == cold, cold


def streams_of_modules_are_kept():
    pathlib.Path("script.py").write_text("import streams, sys\nprint('a line')\nprint('another', file=sys.stderr)\n")
    for source in (
        "class Copy:\n    write, flush = sys.stdout.write, sys.stdout.flush\nsys.stdout = Copy()\n",
        "sys.stderr = codecs.getwriter('utf-8')(sys.stderr.buffer)\n",
        "sys.stdout = io.TextIOWrapper(sys.stdout.detach(), encoding='utf-8')\n",
        "sys.stdout = open(1, 'w', buffering=1)\n",
        "sys.stdout, sys.stderr = sys.stderr, sys.stdout\n",
        "sys.stdout = open(os.devnull, 'w')\n",
        "sys.stdout = io.StringIO()\n",
    ):  # fmt: skip
        pathlib.Path("streams.py").write_text("import codecs, io, os, sys\n" + source)
        cold = run(["--num_processes", "2", "script.py"])
        warm = run(["--num_processes", "2", "--preload", "streams", "script.py"])
        assert cold == warm and cold[0] == 0, (source, cold, warm)


def nothing_of_the_watch_is_left():
    pathlib.Path("names.py").write_text("from os import getpid, urandom\n")
    pathlib.Path("script.py").write_text(
        "import names, os, pickle\nprint(names.getpid is os.getpid, pickle.loads(pickle.dumps(names.urandom)) is os.urandom)\n")  # fmt: skip
    assert run(["--num_processes", "1", "--preload", "names", "script.py"]) == (0, "True True\n", "")


def functions_that_a_module_replaces_are_kept():
    pathlib.Path("replaces.py").write_text(
        "import os, random, tempfile\nusual = random.seed\n"
        "def seed(*arguments): print('seed', *arguments); usual(*arguments)\n"
        "random.seed, tempfile.mkdtemp = seed, lambda: 'mine'\ndel os.urandom\n")
    pathlib.Path("script.py").write_text(
        "import os, random, tempfile, replaces\nrandom.seed(3)\n"
        "print(random.random(), tempfile.mkdtemp(), hasattr(os, 'urandom'))\n")
    cold = run(["--num_processes", "1", "script.py"])
    assert cold == (0, "seed 3\n0.23796462709189137 mine False\n", "")
    assert run(["--num_processes", "1", "--preload", "replaces", "script.py"]) == cold


def a_module_may_have_an_older_finder():
    pathlib.Path("older.py").write_text(
        "import sys\nclass Finder:\n    def find_module(self, name, path=None): pass\nsys.meta_path.insert(0, Finder())\n")
    pathlib.Path("numpy").mkdir()
    pathlib.Path("numpy/__init__.py").touch()
    pathlib.Path("numpy/random.py").write_text(
        "import array\ndef get_state(): return 'MT', array.array('I', [1])\ndef set_state(state): pass\ndef seed(number=None): pass\n")
    pathlib.Path("script.py").write_text("import sys\nprint('numpy.random' in sys.modules)\n")
    assert run(["--num_processes", "1", "--preload", "older,numpy.random", "script.py"]) == (0, "True\n", "")


def modules_that_change_nothing_for_others_are_shared():
    pathlib.Path("data").write_text("text")
    pathlib.Path("script.py").write_text("import shares\nprint(shares.value())\n")
    for source in (
        "import logging\nlogging.basicConfig(filename='log', format='%(process)d')\nlogging.warning('')\nvalue = str\n",
        "import mmap\nwith open('data') as file: data = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)\n"
        "def value(): return data[:]\n",
        "import os\nfolder = os.open('.', os.O_DIRECTORY)\nvalue = lambda: os.listdir(folder) != []\n",
        "import os\ntext = os.environ.get('ODD')\nvalue = lambda: text\n",
    ):  # fmt: skip
        pathlib.Path("shares.py").write_text("import module\n" + source)
        warm = run(["--num_processes", "1", "--preload", "shares", "script.py"])
        times = pathlib.Path("imports").read_text()
        cold = run(["--num_processes", "1", "script.py"])
        assert (warm, times) == (cold, "x") and cold[0] == 0, (source, times, cold, warm)
        os.unlink("imports")


def random_numbers_differ_where_python_has_loaded_random():
    os.mkdir("site")
    pathlib.Path("site/sitecustomize.py").write_text("import random\n")
    pathlib.Path("draws.py").write_text("import secrets\nkey = secrets.token_hex()\n")
    pathlib.Path("script.py").write_text("import draws\nprint(draws.key)\n")
    _, out, err = run(["--num_processes", "2", "--preload", "draws", "script.py"], PYTHONPATH="site")
    assert len(set(out.split())) == 2 and "importing draws takes random bytes from the system: " in err, (out, err)


def modules_see_the_arguments_of_their_worker():
    pathlib.Path("parses.py").write_text(
        "import argparse, sys\nparser = argparse.ArgumentParser()\nparser.add_argument('--log')\n"
        "known, sys.argv[1:] = parser.parse_known_args()\n")  # fmt: skip
    pathlib.Path("script.py").write_text("import parses, sys\nprint(parses.known.log, sys.argv)\n")
    words = ["script.py", "--log", "log.$local_rank", "x"]
    code, out, err = run(["--num_processes", "2", "--preload", "parses", *words])
    assert (code, sorted(out.splitlines())) == (0, [f"log.{rank} ['script.py', 'x']" for rank in (0, 1)]), (out, err)
    assert "importing parses reads the arguments, which differ from worker to worker: " in err, err
    # A plain job has its arguments as they are written.
    code, out, err = run(["--num_processes", "1", "--preload", "parses", *words])
    assert (code, out) == (0, "log.$local_rank ['script.py', 'x']\n") and "importing parses changes the arguments: " in err, (out, err)
    # Workers that have the same arguments are forked from a module that only reads them.
    pathlib.Path("parses.py").write_text("import sys\nfrom sys import argv\nwords = argv[1:]\n")
    pathlib.Path("script.py").write_text("import parses, sys\nprint(parses.words, parses.argv is sys.argv)\n")
    assert run(["--num_processes", "1", "--preload", "parses", *words]) == (0, "['--log', 'log.$local_rank', 'x'] True\n", "")
    same = run(["--num_processes", "2", "--preload", "parses", "script.py", "a"])
    assert same == (0, "['a'] True\n" * 2, ""), same
    for reads in "words = [0] + sys.argv", "words = sys.argv + [0]", "words = 'x' in sys.argv", "words = sys.argv.copy()", \
                 "words = str(sys.argv)":  # fmt: skip
        pathlib.Path("reads.py").write_text(f"import sys\n{reads}\n")
        pathlib.Path("script.py").write_text("import reads\n")
        code, _, err = run(["--num_processes", "2", "--preload", "reads", "script.py", "$local_rank"])
        assert code == 0 and "importing reads reads the arguments, which differ from worker to worker: " in err, (reads, err)
    # What a module has kept is what the script has.
    pathlib.Path("keeps.py").write_text("import sys\ndef words(kept=sys.argv):\n    return kept\n")
    pathlib.Path("script.py").write_text("import keeps\nprint(keeps.words())\n")
    code, out, err = run(["--num_processes", "2", "--preload", "keeps", "script.py", "$local_rank"])
    assert (code, sorted(out.splitlines()), err) == (0, [f"['script.py', '{rank}']" for rank in (0, 1)], ""), (code, out, err)
    # Who reads none of them is forked.
    pathlib.Path("reads_none.py").write_text("import sys\nfrom sys import argv\nname = sys.argv[0]\n")
    pathlib.Path("script.py").write_text("import reads_none, sys\nprint(reads_none.name, type(sys.argv), reads_none.argv)\n")
    code, out, err = run(["--num_processes", "2", "--preload", "reads_none", "script.py", "$local_rank"])
    expected = [f"script.py <class 'list'> ['script.py', '{rank}']" for rank in (0, 1)]
    assert (code, sorted(out.splitlines()), err) == (0, expected, ""), (code, out, err)


def modules_of_python_are_those_of_the_program():
    os.mkdir("scripts")
    shutil.copy("module.py", "scripts")
    pathlib.Path("scripts/script.py").write_text("import module, pkgutil\nprint(pkgutil.__file__)\n")
    # One in the current folder is nobody's, one in the folder of the script is the script's.
    for folder in (".", "scripts"):
        file = os.path.realpath(os.path.join(folder, "pkgutil.py"))
        pathlib.Path(file).touch()
        cold, warm = [run(["--num_processes", "1", *flags, "scripts/script.py"]) for flags in ([], ["--preload", "module"])]
        is_found = folder == "scripts"
        assert cold[:2] == warm[:2] and (file in cold[1]) == is_found, (cold, warm)
        assert (f"acc: warning: {file} has the name of a module of Python: workers start without --preload\n" in warm[2]) == is_found, warm


def refuses(words, does, source):
    pathlib.Path("obstacle.py").write_text(source)
    code, out, err = run([*words, "--preload", "module,obstacle", "script.py"])
    assert code == 0 and sorted(out.splitlines())[:2] == ["here 0", "here 1"], out
    assert err.count("acc: ") == 1 and f"importing obstacle {does}: workers start without --preload\n" in err, (source, err)


def refusals_are_one_line():
    pathlib.Path("script.py").write_text("import os, module\nprint('here', os.environ['RANK'])\n")
    words = ["--num_processes", "2", "--max-restarts", "1"]
    for does, source in {
        "starts 1 thread": "import threading\nthreading.Thread(target=threading.Event().wait, daemon=True).start()\n",
        "starts a process": "import subprocess\nchild = subprocess.Popen(['cat'], stdin=subprocess.PIPE)\n",
        "opens a socket": "import socket\nopened = socket.socket()\n",
        "copies or redirects a standard stream": "import os\ncopy = os.dup(1)\n",
        "initializes the GPU": "import sys, types\n"
                               "sys.modules['torch'] = types.SimpleNamespace(cuda=types.SimpleNamespace(is_initialized=lambda: True))\n",
        "reads RANK, which each worker has for itself": "import os\nrank = os.environ.get('RANK')\n",
        "sets WORLD_SIZE, which each worker has for itself": "import os\nos.environ['WORLD_SIZE'] = '1'\n",
        "takes random bytes from the system": "import uuid\nrun = uuid.uuid4()\n",
        "takes a seed from the system": "import random\ngenerator = random.Random()\n",
        "draws numbers of random without a seed": "import random\nnumber = random.random()\n",
        "asks for its process id": "import os\npid = os.getpid()\n",
        "makes a temporary file": "import tempfile\nfolder = tempfile.TemporaryDirectory()\n",
        "registers what is done at exit": "import atexit, logging\natexit.register(logging.info, 'over')\n",
        "reads all variables, some of which each worker has for itself": "import os\ncopy = os.environ.copy()\n",
        "asks for its thread id": "import threading\nthread = threading.get_native_id()\n",
        "makes a UUID": "import uuid\nrun = uuid.uuid1()\n",
        "sets a timer": "import signal\nsignal.alarm(1000)\n",
        "opens a pipe": "import os\npipe = os.pipe()\n",
        "opens anon_inode:[eventpoll]": "import selectors\nselector = selectors.DefaultSelector()\n",
        "keeps /memfd:cache (deleted) open": "import os\nfile = os.memfd_create('cache')\n",
        f"keeps {os.getcwd()}/module.py open": "file = open('module.py')\n",
        f"locks {os.getcwd()}/lock": "import fcntl\nfile = open('lock', 'a')\nfcntl.flock(file, fcntl.LOCK_SH)\n",
        "creates shared memory": "import mmap\nmemory = mmap.mmap(-1, 1)\n",
    }.items():  # fmt: skip
        refuses(words, does, source)
    for does, source in {
        "reads all variables, some of which each worker has for itself": "import os\nnames = list(os.environb)\n",
        "reads RANK, which each worker has for itself": "import os\nrank = os.getenvb(b'RANK')\n",
        "takes random bytes from the system": "import os\nkey = os.getrandom(8)\n",
        "asks for its process id": "import multiprocessing\npid = multiprocessing.current_process().pid\n",
    }.items():  # fmt: skip
        refuses(words, does, source)
    pathlib.Path("broken.py").write_text("import module, missing\n")
    code, out, err = run([*words, "--preload", "missing", "broken.py"])
    assert code == 1 and "ModuleNotFoundError: No module named 'missing'" in err, err
    assert err.count("workers start without --preload") == 1, err
    code, _, err = run(["--preload", "torch", "/bin/true"])
    assert code == 2 and err.startswith("acc: --preload: /bin/true is not a program for Python ") and err.count("\n") == 1, err


def nothing_is_left():
    """Whatever is killed: what the supervisor has started, the fork server included, is gone."""
    pathlib.Path("script.py").write_text("import os, signal\nopen(os.environ['FIFO'], 'w').write('x')\nsignal.pause()\n")
    os.mkfifo("fifo")
    for victim in ("supervisor", "agent"):
        command = [ACC, "launch", "--cpu", "--python", sys.executable, "--num_processes", "2", "--preload", "json", "script.py"]
        process = subprocess.Popen(command, env=os.environ | {"FIFO": "fifo"}, stderr=subprocess.DEVNULL)
        with open("fifo") as fifo:
            told = ""
            while len(told) < 2:
                told += fifo.read()
        pids = descendants(process.pid)
        assert len(pids) >= 5, pids  # guardian, agent, fork server, workers
        watched = [os.pidfd_open(pid) for pid in pids]
        os.kill(process.pid if victim == "supervisor" else pids[1], 9)
        process.wait(TIMEOUT)
        for descriptor in watched:
            assert select.select([descriptor], [], [], TIMEOUT)[0], f"{victim}: something lives"
            os.close(descriptor)


def descendants(pid):
    parents = {}
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                parents[int(entry.name)] = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
    found = [pid]
    for parent in found:
        found += sorted(child for child, of in parents.items() if of == parent)
    return found[1:]


def main():
    cases = [workers_are_the_same, programs_of_every_kind_are_the_same, modules_are_imported_once, chance_differs, seeds_are_kept,
             streams_of_modules_are_kept,
             nothing_of_the_watch_is_left, functions_that_a_module_replaces_are_kept, a_module_may_have_an_older_finder, an_import_that_hangs_is_no_secret, an_import_that_takes_long_is_shown,
             a_module_may_ignore_the_end_of_children, modules_that_change_nothing_for_others_are_shared,
             random_numbers_differ_where_python_has_loaded_random, modules_see_the_arguments_of_their_worker,
             modules_of_python_are_those_of_the_program, refusals_are_one_line, nothing_is_left]  # fmt: skip
    names = sys.argv[2:]
    if names[:1] == ["--same"]:
        expected = [case.__name__ for case in cases]
        assert expected == names[1:], f"tests/CMakeLists.txt has not the cases {' '.join(expected)}"
        return
    for case in cases:
        if names and case.__name__ not in names:
            continue
        began = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="acc preload ") as folder:
            os.chdir(folder)
            pathlib.Path("module.py").write_text(MODULE)
            case()
            os.chdir("/")
        print(f"{case.__name__}: ok, {time.monotonic() - began:.1f} s", flush=True)


if __name__ == "__main__":
    main()
