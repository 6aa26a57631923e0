#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""C++ notebooks in a real Jupyter kernel: jupyter_test.py ACC SHARE WORK CASE. SHARE is the build's share/acc/notebook, WORK a
folder for what the cases write. Runs in the Python that ACC_NOTEBOOK_PYTHON names; without it, skipped."""

import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PYTHON = os.environ.get("ACC_NOTEBOOK_PYTHON")
if not PYTHON:
    print("skipped: ACC_NOTEBOOK_PYTHON names no Python with Jupyter and cppyy")
    sys.exit(77)
if os.environ.get("ACC_JUPYTER_TEST") != PYTHON:
    os.environ["ACC_JUPYTER_TEST"] = PYTHON
    os.execv(PYTHON, [PYTHON, *sys.argv])

import notebook_kernel  # noqa: E402
from notebook_kernel import need  # noqa: E402

ACC, SHARE, WORK = (pathlib.Path(word).resolve() for word in sys.argv[1:4])


def isolate():
    """Nothing of the user's is read or written."""
    home = WORK / "home"
    home.mkdir(parents=True, exist_ok=True)
    os.environ |= {
        "HOME": str(home), "XDG_CACHE_HOME": str(WORK / "cache"), "JUPYTER_DATA_DIR": str(WORK / "jupyter"),
        "IPYTHONDIR": str(WORK / "ipython"), "MPLCONFIGDIR": str(WORK / "matplotlib"), "HF_HOME": str(WORK / "home/huggingface"),
        "OMP_NUM_THREADS": "1", "PYDEVD_DISABLE_FILE_VALIDATION": "1",
    }  # fmt: skip


def acc_notebook(*words):
    """(exit code, output) of `acc notebook`."""
    command = [str(ACC), "notebook", *words, "--python", PYTHON]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def install():
    shutil.rmtree(WORK, ignore_errors=True)
    isolate()
    code, said = acc_notebook("--check")
    need(code == 1 and "\nok       cling: LLVM " in said and "missing  precompiled header: " in said, said)
    code, said = acc_notebook("install")
    need(code == 0, said)
    for pattern in (r"\[1/2\] precompiled header", r"\d+ s, \d+ headers read", r"\[2/2\] kernel: .*acc-cpp", r'"C\+\+ \(acc\)"'):
        need(re.search(pattern, said), f"no {pattern} in: {said}")
    code, said = acc_notebook("--check")
    need(code == 0 and all(line.startswith("ok ") for line in said.splitlines()), said)
    code, said = acc_notebook("install")
    need(code == 0 and "precompiled header: is up to date" in said, said)


def out_of_date():
    """A header that has another time stamp than when it was precompiled: the kernel does without, and says so."""
    header = SHARE / "precompiled.hpp"
    status = header.stat()
    try:
        os.utime(header, ns=(status.st_atime_ns, status.st_mtime_ns + 10**9))
        code, said = acc_notebook("--check")
        need(code == 1 and f"precompiled header: is out of date: {header} has changed; acc notebook install" in said, said)
        with notebook_kernel.kernel(WORK) as kernel:
            shown = kernel.good("1 + 1", "(int) 2\n")
            need("is out of date" in shown.stderr and "run acc notebook install" in shown.stderr, shown.stderr)
            need(kernel.good("2 + 2", "(int) 4\n").stderr == "", "it says so in every cell")
    finally:
        os.utime(header, ns=(status.st_atime_ns, status.st_mtime_ns))
    need(acc_notebook("--check")[0] == 0, "the time stamp is not the old one")


NET = """\
struct NetImpl : torch::nn::Module {
  torch::nn::Linear fc{register_module("fc", torch::nn::Linear(2, WIDTH))};
  at::Tensor forward(const at::Tensor& rows) { return fc(rows); }
};
TORCH_MODULE(Net);
"""


def cells():
    with notebook_kernel.kernel(WORK) as kernel:
        first = kernel.good("#include <acc/acc.hpp>\n#include <acc/notebook.hpp>\n#include <torch/torch.h>\n")
        need(first.stderr == "", f"the first cell does without the precompiled header: {first.stderr}")

        # Values, variables, functions, types, each of them a second time.
        kernel.good("int count = 3;\ncount + 1", "(int) 4\n")
        kernel.good("std::string count = \"three\";\ncount", '(std::string &) "three"\n')
        kernel.good("int twice(int a) { return 2 * a; }\nstd::cout << twice(2) << std::endl;\nint more = twice(3);\nmore", "4\n(int) 6\n")
        kernel.good("int twice(int a) { return 20 * a; }\ntwice(2)", "(int) 40\n")
        for width in ("3", "5"):
            kernel.good(NET.replace("WIDTH", width))
            kernel.good("Net net;\nstd::cout << net->forward(torch::ones({4, 2})).size(1) << std::endl;", f"{width}\n")
        kernel.good("auto [first, second] = std::pair{1, 2.5};\nfirst + second", "(double) 3.5000000\n")
        kernel.good("at::arange(3)", "(at::Tensor) \n 0\n 1\n 2\n[ CPULongType{3} ]\n")
        kernel.good("// a comment alone")

        # Output comes as it is written, of each stream to its own.
        shown = kernel.good('std::printf("a\\n");\nstd::cerr << "b\\n";\nstd::cout << "c" << std::endl;\nstd::fprintf(stderr, "d\\n");')
        need(shown.stdout == "a\nc\n" and shown.stderr == "b\nd\n", f"{shown.stdout!r} {shown.stderr!r}")

        # What does not compile: where, and nothing of the statement has run.
        kernel.bad("int sum(int a) {\n  return a + nothing;\n}", "CompileError: cell ", ":2:14: error: use of undeclared identifier 'nothing'")
        kernel.bad('  undeclared(std::printf("ran\\n"));', ":1:3: error: use of undeclared identifier 'undeclared'")
        kernel.bad("f(;\n}", "CompileError: line 2: '}' closes nothing")

        # Exceptions: their type and text, and those of LibTorch without what is on the stack.
        kernel.bad('throw std::runtime_error("bad batch");', "CppException: std::runtime_error: bad batch")
        kernel.bad('int never = [] { throw acc::Error({.what = "is missing", .where = "data"}); return 1; }();', "acc::Error: data: is missing")
        shown = kernel.bad("at::ones({2}).view({3});", "c10::Error: shape '[3]' is invalid for input of size 2")
        need("Exception raised from" not in shown.error and shown.stderr == "", shown.error + shown.stderr)
        kernel.bad("throw 3;", "CppException: int")

        # Python, which sees what was declared last.
        kernel.good("std::vector<double> numbers{1, 2};\n")
        kernel.good("%%python\nprint(cpp.numbers.size(), list(cpp.numbers), cpp.more, cpp.count, cpp.twice(2))", "2 [1.0, 2.0] 6 three 40\n")
        kernel.good("std::vector<double> numbers{3};\n")
        kernel.good("%%python\nprint(list(cpp.numbers))", "[3.0]\n")
        kernel.bad("%%python\n1 / 0", "ZeroDivisionError")
        kernel.bad("%%python\ncpp.nothing", "AttributeError")


def execute():
    """The example, whole, as `jupyter nbconvert --execute` runs it."""
    import nbclient
    import nbconvert
    import nbformat

    folder = WORK / "execute" / "notebook"
    config = WORK / "home/huggingface/accelerate/default_config.json"
    shutil.rmtree(folder.parent, ignore_errors=True)
    config.unlink(missing_ok=True)
    folder.mkdir(parents=True)
    (folder.parent / "mnist").symlink_to(ROOT / "apps/examples/mnist")
    book = nbformat.read(ROOT / "apps/examples/notebook/digits.ipynb", as_version=4)
    nbformat.validate(book)
    client = nbclient.NotebookClient(book, timeout=notebook_kernel.LIMIT, resources={"metadata": {"path": str(folder)}})
    client.execute()
    nbformat.write(book, folder / "digits.ipynb")
    page, _ = nbconvert.HTMLExporter().from_notebook_node(book)
    (folder / "digits.html").write_text(page)

    code = [cell for cell in book.cells if cell.cell_type == "code"]
    outputs = [output for cell in code for output in cell.outputs]
    text = "".join(output.text for output in outputs if output.output_type == "stream")
    need("precompiled header" not in text, text)
    for pattern in (rf"written to {config}\n", r"Launching training on 2 CPUs\.", r"epoch 3: 9\d\.\d% of 1000\n", r"2 processes, 96 steps each"):
        need(re.search(pattern, text), f"no {pattern} in: {text}")
    pictures = [output for output in outputs if "image/png" in output.get("data", {})]
    need(len(pictures) == 2, f"{len(pictures)} pictures")
    need(config.exists(), "no config file")


INCLUDES = "#include <acc/acc.hpp>\n#include <acc/notebook.hpp>\n#include <torch/torch.h>\n"
RANKS = """\
int rank_of_worker() {
  acc::Accelerator accelerator;
  accelerator.wait_for_everyone();
  return accelerator.process_index();
}
auto ranks = acc::notebook_launcher(rank_of_worker, {.num_processes = 2});
std::cout << ranks.at(0) << ranks.at(1) << std::endl;
"""


def launches(kernel):
    shown = kernel.good(RANKS)
    need(shown.stdout.endswith("01\n"), shown.stdout)


def interrupt():
    """In the middle of a launch: the cell ends, no worker is left, and the next cell launches again."""
    with notebook_kernel.kernel(WORK) as kernel:
        kernel.good(INCLUDES)
        kernel.good("""\
int waits(int) {
  acc::Accelerator accelerator;
  std::printf("rank %d waits\\n", accelerator.process_index());
  for (;;) ::pause();
}""")
        workers = []

        def when_both_wait(shown):
            if not workers and shown.stdout.count(" waits\n") == 2:
                workers.extend(kernel.children())
                kernel.interrupt()

        shown = kernel.run("auto never = acc::notebook_launcher(waits, std::tuple{1}, {.num_processes = 2});", when_both_wait)
        need(len(workers) >= 2, f"{workers}")
        need("KeyboardInterrupt" in shown.error, f"{shown.error!r} {shown.stderr}")
        need(not kernel.children(), f"{kernel.children()}")
        kernel.good("1 + 1", "(int) 2\n")
        launches(kernel)


def failures():
    """A worker that fails: the error says which and how, the other is ended, the kernel lives on."""
    with notebook_kernel.kernel(WORK) as kernel:
        kernel.good(INCLUDES)
        kernel.good("""\
int fails(int how) {
  acc::Accelerator accelerator;
  accelerator.wait_for_everyone();
  if (accelerator.process_index() == 1) {
    if (how == 0) throw std::runtime_error("bad batch");
    if (how == 1) throw acc::Error({.what = "is missing", .where = "data"});
    if (how == 2) *static_cast<volatile int*>(nullptr) = 1;
    if (how == 3) std::exit(3);
  }
  accelerator.wait_for_everyone();
  return 0;
}""")
        expected = (("rank 1", "bad batch"), ("rank 1", "data: is missing"), ("rank 1", "SIGSEGV"), ("rank 1", "exit code 3"))
        for how, parts in enumerate(expected):
            shown = kernel.bad(f"acc::notebook_launcher(fails, std::tuple{{{how}}}, {{.num_processes = 2}});", "acc::Error", *parts)
            need(not kernel.children(), f"{parts}: {kernel.children()} {shown}")
        launches(kernel)


def trainer():
    with notebook_kernel.kernel(WORK) as kernel:
        kernel.good(INCLUDES + NET.replace("WIDTH", "2"))
        kernel.good("""\
std::vector<double> train(int epochs) {
  acc::set_seed(1);
  const at::Tensor rows = at::randn({256, 2});
  const acc::TensorDataset data(rows, rows.select(1, 0).gt(0).to(at::kLong));
  acc::TrainingArguments arguments;
  arguments.num_train_epochs = epochs;
  arguments.learning_rate = 0.1;
  arguments.save_strategy = acc::SaveStrategy::no;
  arguments.logging_strategy = acc::IntervalStrategy::epoch;
  Net net;
  acc::Trainer trainer(net, arguments, data);
  trainer.train();
  std::vector<double> losses;
  for (const auto& entry : trainer.state().log_history) {
    if (entry.contains("loss")) losses.push_back(entry.at("loss"));
  }
  return losses;
}
auto losses = acc::notebook_launcher(train, std::tuple{3}, {.num_processes = 2});""")
        kernel.good("losses.size()", "(unsigned long) 2\n")
        kernel.good("std::cout << losses[0].size() << (losses[0].at(2) < losses[0].at(0)) << (losses[0] == losses[1]) << std::endl;", "311\n")


CASES = {case.__name__: case for case in (install, out_of_date, cells, execute, interrupt, failures, trainer)}

if __name__ == "__main__":
    isolate()
    try:
        CASES[sys.argv[4]]()
    except AssertionError as error:
        print(f"FAILED: {error}")
        sys.exit(1)
