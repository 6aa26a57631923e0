# SPDX-License-Identifier: Apache-2.0
"""acc.notebook_launcher in an environment laid out as pip does it, without PyTorch and cloudpickle: its workers call functions of
a module.

    notebook_launcher_test.py ACC SCRIPTS_PACKAGE_FOLDER [CASE ... | --same CASE ...]
"""

import json
import os
import pathlib
import select
import signal
import subprocess
import sys
import tempfile
import textwrap
import time

from replace_torchrun_test import Environment

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from ports import free_port  # noqa: E402

TIMEOUT = 100  # seconds; only a failing test waits so long
WORK = """\
import os, signal, sys, time
RANK = int(os.environ.get("RANK", -1))
def tell(word):
    print(word, "of rank", os.environ["RANK"])
    print("error of rank", os.environ["RANK"], file=sys.stderr)
    return word, int(os.environ["RANK"])
def variable(name):
    return os.environ.get(name)
def fail(ranks):
    if int(os.environ["RANK"]) in ranks:
        raise KeyError("no data")
    time.sleep(1000)
class Ranked(Exception):
    rank = property(lambda error: "its own")
def fail_ranked():
    raise Ranked("one")
class Stalling(Exception):
    def __reduce__(self):
        open(self.args[0], "w").close()
        time.sleep(1000)
def fail_stalling(pipe):
    if RANK == 1:
        raise Stalling(pipe)
    open(pipe).read()
    raise ValueError("second")
def die_writing():
    result = sys.argv[2 + RANK]
    with open(result, "wb") as file: file.write(b"\\x80\\x05\\x95")
    kill()
def sleep(): time.sleep(1000)
def replace_streams():
    sys.stdout.close()
    sys.stderr = None
    return RANK
class Odd(Exception):
    def __init__(self, one, two):
        super().__init__(f"{one} and {two}")
def fail_oddly():
    raise Odd(1, 2)
def end(how):
    how() if os.environ["RANK"] == "1" else time.sleep(1000)
def kill(): os.kill(os.getpid(), signal.SIGSEGV)
def leave(): sys.exit(7)
def end_well(): sys.exit(0)
def fail_when_stopped():
    def stop(*_): raise ValueError("stopped")
    if os.environ["RANK"] == "3":
        raise KeyError("no data")
    signal.signal(signal.SIGTERM, stop)
    time.sleep(1000)
def draw():
    import random
    return random.random()
def restart():
    if os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
        raise ValueError("the first attempt")
    return int(os.environ["TORCHELASTIC_RESTART_COUNT"])
def wait(file):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    with open(file, "a") as pids:
        pids.write(f"{os.getpid()} ")
    os.write(1, b"waits\\n")
    time.sleep(1000)
def used_cuda():
    import torch
    return torch.cuda.initialized
"""
PREFACE = "import os, sys, time, acc, work\nfrom acc import notebook_launcher as launch\n"


def run(venv, code, stdin=None, **variables):
    done = venv.run("-c", PREFACE + textwrap.dedent(code), **variables)
    assert done.returncode == 0, done
    return done


def wait_until(condition):
    deadline = time.monotonic() + TIMEOUT
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def said(venv, code, **variables):
    return run(venv, code, **variables).stdout.splitlines()


def make(folder, acc, package, python=sys.executable):
    venv = Environment(folder, acc, package, python)
    (venv.folder / "work.py").write_text(WORK)
    return venv


def results_and_output(venv):
    done = run(venv, """
        print(launch(work.tell, ("word",), 2))
        print(launch(work.tell, ("both",), 2, local_ranks_filter="0,1"))
        print(acc.debug_launcher(work.tell, ("quiet",)))
        """)
    lines = done.stdout.splitlines()
    assert lines[:3] == ["Launching training on 2 CPUs.", "word of rank 0", "[('word', 0), ('word', 1)]"], lines
    assert sorted(lines[4:6]) == ["both of rank 0", "both of rank 1"], lines
    assert lines[-2:] == ["quiet of rank 0", "[('quiet', 0), ('quiet', 1)]"], lines
    assert sorted(done.stderr.splitlines()) == ["error of rank 0"] * 3 + ["error of rank 1"], done.stderr


def output_reaches_streams_of_python(venv):
    assert said(venv, """
        import contextlib, io
        out, error = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(error):
            launch(work.tell, ("word",), 2)
        print([out.getvalue(), error.getvalue()])
        """) == [str(["Launching training on 2 CPUs.\nword of rank 0\n", "error of rank 0\n"])]


def variables_of_workers(venv):
    port = free_port()
    lines = said(venv, f"""
        os.environ["OF_NOTEBOOK"] = "yes"
        for name in "OF_NOTEBOOK", "WORLD_SIZE", "LOCAL_RANK", "ACCELERATE_MIXED_PRECISION", "MASTER_PORT":
            print(launch(work.variable, (name,), 2, mixed_precision="BF16"))
        print(launch(work.variable, ("MASTER_PORT",), 2, use_port="{port}"))
        """)[1::2]
    assert lines[:4] == ["['yes', 'yes']", "['2', '2']", "['0', '1']", "['bf16', 'bf16']"], lines
    assert "29500" not in lines[4] and lines[5] == f"['{port}', '{port}']", lines


def a_failure_is_raised_again(venv):
    lines = said(venv, """
        import traceback
        for ranks in (1,), (0,):
            try:
                launch(work.fail, (ranks,), 2)
            except KeyError as error:
                print(repr(error), error.rank, *str(error.__cause__).splitlines()[1:3], sep="|")
                assert 'in fail\\n    raise KeyError("no data")' in traceback.format_exc()
        """)[1::2]
    assert lines == [f"KeyError('no data')|{rank}|rank {rank}:|Traceback (most recent call last):" for rank in (1, 0)], lines


def failures_without_an_exception(venv):
    lines = said(venv, """
        for function, arguments in (work.fail_oddly, ()), (work.end, (work.kill,)), (work.end, (work.leave,)):
            try:
                launch(function, arguments, 2)
            except acc.notebook.WorkerError as error:
                print(error, isinstance(error, RuntimeError))
        print(launch(work.end_well, (), 2))
        """)[1::2]
    assert lines[0][6:] == " work.Odd: 1 and 2 True", lines
    assert lines[1:] == ["rank 1 was ended by SIGSEGV True", "rank 1 ended with exit code 7 True", "[None, None]"], lines


def failures_that_hide_themselves(venv):
    lines = said(venv, """
        for function in work.die_writing, work.fail_ranked:
            try:
                launch(function, (), 2)
            except Exception as error:
                print(type(error).__name__, error, error.rank)
        print(launch(work.replace_streams, (), 2))
        """)[1::2]
    assert lines[0][:13] == "WorkerError r" and " was ended by SIGSEGV " in lines[0], lines
    assert lines[1:] == ["Ranked one its own", "[0, 1]"], lines


def a_failure_that_is_stopped_while_it_is_sent(venv):
    """gives way to the one for which it was stopped, which was sent whole."""
    os.mkfifo(venv.folder / "pipe")
    lines = said(venv, """
        try:
            launch(work.fail_stalling, ("pipe",), 2)
        except ValueError as error:
            print(error, error.rank)
        """)
    assert lines[-1] == "second 0", lines


def workers_have_limits_of_the_notebook(venv):
    """As forks of it: its umask, its limits and its CPUs at each call, whatever they were at the first."""
    (venv.folder / "limits.py").write_text(textwrap.dedent("""
        import os, resource
        def limits():
            umask = os.umask(0)
            os.umask(umask)
            return umask, resource.getrlimit(resource.RLIMIT_CORE), resource.getrlimit(resource.RLIMIT_NOFILE), os.sched_getaffinity(0)
        """))
    assert said(venv, """
        import resource, limits
        print(launch(limits.limits, (), 2) == [limits.limits()] * 2)
        os.umask(0o027)
        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
        resource.setrlimit(resource.RLIMIT_NOFILE, (500, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
        print(launch(limits.limits, (), 2) == [limits.limits()] * 2)
        """)[1::2] == ["True", "True"]


def the_notebook_may_move(venv):
    """To another folder, with other variables: both are those of the call, for workers and for what is imported for them."""
    (venv.packages / "first.py").write_text("")
    (venv.packages / "second.py").write_text("import os\nSEEN = os.getcwd(), os.environ.get('OF_NOTEBOOK')\n")
    (venv.folder / "location.py").write_text("import os\ndef here(): return os.getcwd()\n")
    (venv.folder / "seen.py").write_text("import second\ndef seen(): return second.SEEN\n")
    assert said(venv, """
        import pathlib, first, location
        sys.path.append(pathlib.Path("ignored"))
        sys.path[0] = os.getcwd()
        os.mkdir("other")
        print(launch(location.here, (), 2) == [os.getcwd()] * 2)
        os.chdir("other")
        os.environ["OF_NOTEBOOK"] = "later"
        print(launch(location.here, (), 2) == [os.getcwd()] * 2)
        os.environ["OF_NOTEBOOK"] = "now"
        import seen, second
        print(launch(seen.seen, (), 2) == [(os.getcwd(), "now")] * 2)
        """)[1::2] == ["True"] * 3


def restarts(venv):
    assert said(venv, "print(launch(work.restart, (), 2, max_restarts=2))")[-1] == "[1, 1]"


def one_process_is_the_notebook_itself(venv):
    lines = said(venv, """
        seen = []
        print(launch(seen.append, (7,), 1, mixed_precision="fp16"), seen)
        print(launch(work.variable, ("ACCELERATE_MIXED_PRECISION",), 0, mixed_precision="fp16"), os.environ.get("RANK"))
        """)
    assert lines[::2] == ["Launching training on CPU."] * 2 and lines[1::2] == ["[None] [7]", "['fp16'] None"], lines


def errors_name_what_is_wrong(venv):
    lines = said(venv, """
        import threading
        def refused(function, *arguments, **options):
            try:
                launch(function, *arguments, **options)
            except Exception as error:
                print(type(error).__name__, error, sep=": ")
        def mine(): pass
        refused(mine, (), 2)
        refused(work.tell, ("a", threading.Lock()), 2)
        refused(work.tell, ("a",))
        refused(work.tell, ("a",), 2, "fp7")
        refused(work.tell, ("a",), 2, node_rank=2, num_nodes=2)
        refused(work.tell, ("a",), 1, num_nodes=2)
        refused(work.tell, ("a",), 1, hang_timeout=600, cpu=True)
        refused(work.tell, ("a",), 2, dry_run=True)
        os.environ["RANK"] = "0"
        refused(work.tell, ("a",), 2)
        del os.environ["RANK"]
        os.environ.update(KAGGLE_URL="x", TPU_NAME="y")
        refused(work.tell, ("a",))
        """)
    assert lines == [
        "SendingError: mine is not a function of a module, and only cloudpickle sends such ones: pip install cloudpickle, or "
        "move it to a module",
        "SendingError: argument 2 cannot be sent to the workers (lock; TypeError: cannot pickle '_thread.lock' object): make it "
        "in the function",
        "ValueError: num_processes is missing: how many workers are to be started, as in num_processes=2?",
        "ValueError: mixed_precision is one of no, fp16, bf16, fp8, not 'fp7'",
        "ValueError: node_rank is 2, and must be below num_nodes, 2",
        "ValueError: num_processes is 1, and must be at least 2 on each of several nodes",
        "ValueError: hang_timeout, cpu: no effect with num_processes=1, where the notebook calls the function itself",
        "ValueError: dry_run is not a flag for notebook_launcher, which itself sets what acc starts",
        "RuntimeError: this process is a worker of a job already (RANK is set): call it in the program that starts the job",
        "RuntimeError: workers on a TPU are started by accelerate: pip install accelerate"], lines
    done = run(venv, "try: launch(work.tell, ('a',), 2, max_restart=1)\nexcept acc.notebook.WorkerError as error: print(error)")
    assert done.stderr.startswith("acc: unrecognized arguments: --max_restart (did you mean '--max"), done.stderr
    assert done.stdout == "acc ended with exit code 2, and says above why\n", done.stdout


def nodes_of_one_host_are_not_confused(venv):
    """Rank 3 has the same local rank on the second node as rank 1 on the first, which also fails, but later."""
    port = free_port()
    code = PREFACE + textwrap.dedent(f"""
        try: launch(work.fail_when_stopped, (), 2, use_port="{port}", num_nodes=2, node_rank=int(sys.argv[1]))
        except Exception as error: print(type(error).__name__, error.rank, "KeyError" in repr(error) + str(error), sep="|")
        """)
    nodes = [venv.start("-c", code, str(node)) for node in (0, 1)]
    lines = [node.communicate(timeout=TIMEOUT)[0].splitlines()[-1] for node in nodes]
    assert lines == ["WorkerError|3|True", "KeyError|3|True"], lines


def files_above_1023(venv):
    """Of the notebook's, as with many data sets open."""
    assert said(venv, """
        import contextlib, io, resource
        resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
        files = [open(os.devnull) for _ in range(1100)]
        with contextlib.redirect_stdout(io.StringIO()) as out:
            results = launch(work.tell, ("word",), 2)
        print(results, out.getvalue().splitlines()[-1])
        """) == ["[('word', 0), ('word', 1)] word of rank 0"]


def too_many_workers_leave_no_file(venv):
    lines = said(venv, """
        import resource
        resource.setrlimit(resource.RLIMIT_NOFILE, (60, 60))
        before = os.listdir("/proc/self/fd")
        try: launch(work.tell, ("word",), 100)
        except OSError as error: print(error)
        print(os.listdir("/proc/self/fd") == before)
        """)
    assert lines == ["[Errno 24] 100 workers need a file each: Too many open files", "True"], lines


def the_end_of_a_thread_ends_no_other_call(venv):
    """The thread that started the fork server ends while it imports for another one."""
    (venv.packages / "slow.py").write_text("import os\nif os.path.exists('hang'):\n    open('importing', 'w').close()\n    open('hang').read()\n")
    (venv.folder / "uses.py").write_text("import slow\ndef rank(): return int(os.environ['RANK'])\nimport os\n")
    assert said(venv, """
        import threading
        called = threading.Event()
        def first():
            launch(work.tell, ("first",), 2)
            called.set()
            while not os.path.exists("importing"): time.sleep(0.01)
        def end_first_and_go_on():
            while os.path.exists(f"/proc/self/task/{starter.native_id}"): time.sleep(0.01)  # for the kernel, too
            open("hang", "w").close()  # ends the read; waits for it, as it may not have begun
        starter = threading.Thread(target=first)
        starter.start()
        called.wait()
        import slow, uses
        os.mkfifo("hang")
        threading.Thread(target=end_first_and_go_on, daemon=True).start()
        print(launch(uses.rank, (), 2))
        """)[-1] == "[0, 1]"


def the_end_of_the_notebook_ends_an_import(venv):
    (venv.packages / "torch.py").write_text("import os\nopen('importing', 'w').write(str(os.getpid()))\nopen('hang').read()\n")
    os.mkfifo(venv.folder / "hang")
    notebook = venv.start("-c", PREFACE + "launch(work.tell, ('never',), 2)")
    importing = venv.folder / "importing"
    wait_until(lambda: importing.exists() and importing.read_text())
    server = os.pidfd_open(int(importing.read_text()))
    watchers = [os.pidfd_open(pid) for pid in children(int(importing.read_text()))]
    notebook.kill()
    assert watchers and all(map(has_ended, [server, *watchers]))
    notebook.communicate(timeout=TIMEOUT)


def workers_have_seeds_of_their_own(venv):
    lines = said(venv, """
        import random
        random.seed(1)
        print(len({*launch(work.draw, (), 2), *launch(work.draw, (), 2), random.random()}))
        """)
    assert lines[-1] == "5", lines


def modules_may_change(venv):
    """Modules of the user are imported anew for each call; installed ones once, in the fork server."""
    (venv.packages / "heavy.py").write_text("print('imported', file=open('imports', 'a'))\nclass Thing: pass\n")
    (venv.folder / "mine.py").write_text("def work(): return 'before'\n")
    assert said(venv, """
        import heavy, mine
        def call(): print(launch(mine.work, (), 2), open("imports").read().count("imported"))
        call()
        open("mine.py", "w").write("from heavy import Thing\\ndef work(): return 'changed, after'\\n")
        call()
        """)[1::2] == ["['before', 'before'] 2", "['changed, after', 'changed, after'] 2"]


def a_module_that_starts_threads(venv):
    """Is left to the workers: a fork has no threads."""
    (venv.packages / "threaded.py").write_text(
        "import threading\nthread = threading.Thread(target=threading.Event().wait, daemon=True)\nthread.start()\n")
    (venv.folder / "uses.py").write_text("import threaded\ndef alive(): return threaded.thread.is_alive()\n")
    assert said(venv, """
        import uses, threaded
        print(launch(uses.alive, (), 2))
        """)[-1] == "[True, True]"


def cuda_of_the_notebook_does_not_matter(venv):
    (venv.packages / "torch").mkdir()
    (venv.packages / "torch/__init__.py").write_text(
        "class cuda:\n    initialized = False\n    is_available = staticmethod(lambda: False)\n"
        "    is_initialized = staticmethod(lambda: cuda.initialized)\ndef set_num_threads(count): pass\n")
    assert said(venv, """
        import torch
        torch.cuda.initialized = True  # as after torch.ones(1).cuda()
        print(launch(work.used_cuda, (), 2), launch(work.used_cuda, (), 2))
        """)[-1] == "[False, False] [False, False]"


def colab_needs_no_number(venv):
    """It has one GPU or none, and accelerate's tutorials give no number there."""
    lines = said(venv, """
        import types
        sys.modules["google.colab"] = types.ModuleType("google.colab")
        print(launch(work.variable, ("RANK",)))
        class torch: cuda = types.SimpleNamespace(device_count=lambda: 2, is_available=lambda: True)
        sys.modules["torch"] = torch
        try: launch(work.variable, ("RANK",))
        except ValueError as error: print(error)
        """)
    assert lines[:2] == ["Launching training on CPU.", "[None]"] and lines[2].startswith("num_processes is missing"), lines


def basic_config(venv):
    lines = said(venv, """
        path = acc.write_basic_config("bf16")
        import json
        print(path, json.loads(path.read_text())["mixed_precision"])
        print(acc.write_basic_config(save_location=path))
        print(acc.write_basic_config(save_location="folder/config.yaml"))
        try: acc.write_basic_config("fp7")
        except ValueError as error: print(error)
        """)
    default = venv.folder / ".cache/huggingface/accelerate/default_config.yaml"
    assert lines == [f"{default} bf16", f"there is a config file already: {default} (acc config writes it anew)", "False",
                     "folder/config.yaml", "mixed_precision is one of no, fp16, bf16, fp8, not 'fp7'"], lines


def children(pid):
    return [int(word) for word in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def twenty_calls_leave_nothing(venv):
    temporary = venv.folder / "temporary"
    temporary.mkdir()
    lines = said(venv, """
        import tempfile
        server = lambda: int(open(f"/proc/self/task/{os.getpid()}/children").read())
        def state():
            folder = f"/proc/{server()}"
            memory = [int(line.split()[1]) for line in open(folder + "/status") if line.startswith("RssAnon")]
            return (len(os.listdir("/proc/self/fd")), os.listdir(tempfile.gettempdir()),
                    open(f"{folder}/task/{server()}/children").read(), server()), len(os.listdir(folder + "/fd")), memory[0]
        launch(work.tell, ("word",), 2)
        first, files, memory = state()
        for call in range(19):
            if call % 5 == 4:
                try: launch(work.fail, ((1,),), 2)
                except KeyError: pass
            else: launch(work.tell, ("word",), 2)
        last, files_now, memory_now = state()
        # The server closes its answer when it is here already.
        print(first == last, files_now - files <= 1 and memory_now - memory < 2000, first, last, files, files_now, memory, memory_now)
        """, TMPDIR=str(temporary))
    assert lines[-1].startswith("True True"), lines[-1]


TRIES = """
    try:
        waiting()
    except KeyboardInterrupt:
        print("interrupted")
    print(launch(work.tell, ("after",), 2))
    """


def start_waiting(venv, code=TRIES):
    """A notebook that calls `waiting`, whose two workers wait, and pidfds of them and of its fork server."""
    pids = venv.folder / "pids"
    waiting = f"def waiting(): launch(work.wait, ({str(pids)!r},), 2, local_ranks_filter='0,1')\n"
    environment = {"PATH": os.environ["PATH"], "HOME": str(venv.folder)}
    notebook = subprocess.Popen([venv.python, "-u", "-c", PREFACE + waiting + textwrap.dedent(code)], text=True, stdin=subprocess.PIPE,
                                stdout=subprocess.PIPE, cwd=venv.folder, env=environment, start_new_session=True)
    for expected in "Launching training on 2 CPUs.\n", "waits\n", "waits\n":
        line = notebook.stdout.readline()
        assert line == expected, line
    processes = [*map(int, pids.read_text().split()), *children(notebook.pid)]
    return notebook, [os.pidfd_open(process) for process in processes]


def has_ended(pidfd):
    return bool(select.select([pidfd], [], [], TIMEOUT)[0])


def an_interrupt_of_an_import(venv):
    """The next call does not take the answer to the first for its own."""
    (venv.packages / "torch.py").write_text("import os\nif os.path.exists('hang'): open('hang').read()\n")
    os.mkfifo(venv.folder / "hang")
    assert said(venv, """
        import signal, threading
        def interrupt():
            global hang
            hang = os.open("hang", os.O_WRONLY)  # once the import reads it
            os.unlink("hang")
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
        threading.Thread(target=interrupt).start()
        try: launch(work.tell, ("never",), 2)
        except KeyboardInterrupt: print("interrupted")
        print(launch(work.tell, ("after",), 2))
        """)[::3] == ["interrupted", "[('after', 0), ('after', 1)]"]


def an_interrupt_stops_all(venv):
    notebook, (*workers, server) = start_waiting(venv)
    os.killpg(notebook.pid, signal.SIGINT)  # as Jupyter does
    assert all(map(has_ended, workers))
    out, _ = notebook.communicate(timeout=TIMEOUT)
    assert out.splitlines() == ["interrupted", "Launching training on 2 CPUs.", "after of rank 0", "[('after', 0), ('after', 1)]"], out
    assert notebook.returncode == 0 and has_ended(server)


def an_interrupt_as_a_call_begins(venv):
    """Comes just before the request for the job or just after it, again and again, and is never lost."""
    assert said(venv, """
        import signal
        from acc import messages
        send, ended = messages.send, 0
        def interrupt(): os.kill(os.getpid(), signal.SIGINT)
        def before(control, message, *files):
            if "words" in message: interrupt()
            send(control, message, *files)
        def after(control, message, *files):
            send(control, message, *files)
            if "words" in message: interrupt()
        print(launch(work.variable, ("RANK",), 2))
        for sending in (before, after) * 5:
            messages.send = sending
            try: launch(work.sleep, (), 2)
            except KeyboardInterrupt: ended += 1
        messages.send = send
        print(launch(work.variable, ("RANK",), 2), ended)
        """)[-1] == "['0', '1'] 10"


def the_end_of_the_notebook_ends_all(venv):
    notebook, processes = start_waiting(venv)
    notebook.kill()
    assert all(map(has_ended, processes))
    notebook.communicate(timeout=TIMEOUT)


def the_end_of_a_program_ends_the_calls_of_its_threads(venv):
    program, processes = start_waiting(venv, """
        import threading
        threading.Thread(target=waiting, daemon=True).start()
        sys.stdin.read()
        """)
    program.communicate(timeout=TIMEOUT)
    assert program.returncode == 0 and all(map(has_ended, processes))


def the_end_of_the_fork_server_ends_all(venv):
    notebook, (*workers, server) = start_waiting(venv)
    signal.pidfd_send_signal(server, signal.SIGKILL)
    assert all(map(has_ended, workers))
    assert notebook.wait(TIMEOUT) == 1 and notebook.stdout.read() == ""


CASES = {function.__name__.replace("_", " "): function for function in (
    results_and_output, output_reaches_streams_of_python, variables_of_workers, a_failure_is_raised_again,
    failures_without_an_exception, failures_that_hide_themselves, a_failure_that_is_stopped_while_it_is_sent,
    workers_have_limits_of_the_notebook, the_notebook_may_move, restarts,
    one_process_is_the_notebook_itself, errors_name_what_is_wrong, nodes_of_one_host_are_not_confused, files_above_1023,
    too_many_workers_leave_no_file, the_end_of_a_thread_ends_no_other_call, the_end_of_the_notebook_ends_an_import,
    workers_have_seeds_of_their_own, modules_may_change, a_module_that_starts_threads,
    cuda_of_the_notebook_does_not_matter, colab_needs_no_number, basic_config, twenty_calls_leave_nothing, an_interrupt_of_an_import, an_interrupt_stops_all,
    an_interrupt_as_a_call_begins, the_end_of_the_notebook_ends_all, the_end_of_a_program_ends_the_calls_of_its_threads,
    the_end_of_the_fork_server_ends_all)}  # fmt: skip


def main(acc, package, names):
    for name in names or CASES:
        with tempfile.TemporaryDirectory(prefix="acc-notebook-") as folder:
            CASES[name](make(folder, acc, package))


if __name__ == "__main__":
    if sys.argv[3:4] == ["--same"]:
        assert sys.argv[4:] == list(CASES), json.dumps(list(CASES))
    else:
        main(pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve(), sys.argv[3:])
