// SPDX-License-Identifier: Apache-2.0
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <utility>

#include "acc/launch/text_reporter.hpp"
#include "support/catch.hpp"

namespace text_reporter_failure_test {

using namespace acc;
using namespace acc::launcher;

namespace {

WorkerFailure failure(ExitStatus status) {
  return {.rank = 5,
          .local_rank = 1,
          .pid = 1234,
          .host = "node7",
          .status = status,
          .time = std::chrono::system_clock::time_point(std::chrono::milliseconds(1'700'000'000'042))};
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("failure_text: names rank, process, host and end", "[launch]") {
  CHECK(summarize(failure(Exited{5})) ==
        "rank 5 (local rank 1, pid 1234) on host node7 failed with exit code 5");
  CHECK(has(summarize(failure(Signaled{SIGSEGV, true})), "ended by signal 11 (SIGSEGV, core dumped)"));
}

TEST_CASE("failure_text: SIGKILL is an OOM kill only with evidence", "[launch]") {
  WorkerFailure killed = failure(Signaled{SIGKILL});
  CHECK(summarize(killed).ends_with("signal 9 (SIGKILL); the kernel counted no OOM kill"));
  CHECK_FALSE(has(summarize(killed), "outside"));  // it may have been the worker itself
  CHECK_FALSE(has(summarize(killed), "killed by the kernel"));
  killed.out_of_memory = true;
  CHECK(has(summarize(killed), "killed by the kernel for memory"));
}

TEST_CASE("failure_text: names the GPU faults that the kernel has logged", "[launch]") {
  WorkerFailure lost = failure(Exited{1});
  lost.xids.emplace();
  CHECK_FALSE(has(failure_text(lost), "kernel"));
  lost.xids = {{79, "0000:3b:00"}, {74, "0000:3c:00"}};
  CHECK(has(failure_text(lost),
            "\n  since the job's start the kernel has logged Xid 79 (fallen off the bus) of the GPU at "
            "0000:3b:00, Xid 74 (NVLink error) of the GPU at 0000:3c:00\n"));
}

TEST_CASE("failure_text: after a crash of native code in Python, says how to see where", "[launch]") {
  const std::string hint = "  with PYTHONFAULTHANDLER=1 Python shows where it crashed\n";
  WorkerFailure crashed = failure(Signaled{SIGSEGV});
  CHECK(has(failure_text(crashed, "/usr/bin/python3"), hint));
  CHECK_FALSE(has(failure_text(crashed), hint));
  CHECK_FALSE(has(failure_text(failure(Signaled{SIGTERM}), "/usr/bin/python3"), hint));
  crashed.stderr_tail = "Fatal Python error: Segmentation fault\n";
  CHECK_FALSE(has(failure_text(crashed, "/usr/bin/python3"), hint));
}

TEST_CASE("failure_text: after an error in a CUDA kernel, says how to see which call failed", "[launch]") {
  const std::string hint =
      "  with CUDA_LAUNCH_BLOCKING=1 the call that failed reports the error, not a later one\n";
  WorkerFailure asserted = failure(Exited{1});
  asserted.stderr_tail = "RuntimeError: CUDA error: device-side assert triggered\n";
  CHECK_FALSE(has(failure_text(asserted), hint));  // CUDA_LAUNCH_BLOCKING is set already
  asserted.stderr_tail += "CUDA kernel errors might be asynchronously reported at some other API call\n";
  CHECK(has(failure_text(asserted), hint));
  asserted.error_file = ErrorFile{.message = std::exchange(asserted.stderr_tail, "")};
  CHECK(has(failure_text(asserted), hint));
}

TEST_CASE("failure_text: a block with time, error file and end of stderr", "[launch]") {
  WorkerFailure one = failure(Exited{1});
  one.attempt = 2;
  one.stderr_tail = "first\nsecond\n";
  one.error_file = ErrorFile{
      .path = "/logs/error.json", .message = "ValueError: no", .traceback = "Trace\nValueError: no\n"};
  const std::string text = failure_text(one);
  CHECK(text.starts_with("acc: rank 5 "));
  CHECK(has(text, "attempt: 2\n"));
  CHECK(has(text, ".042"));
  CHECK(has(text, "  error file: /logs/error.json\n  | Trace\n  | ValueError: no\n"));
  CHECK(has(text, "  last lines of its stderr:\n  | first\n  | second\n"));
  CHECK(text.ends_with('\n'));
}

TEST_CASE("failure_text: refers to output that is visible just above", "[launch]") {
  WorkerFailure one = failure(Exited{1});
  one.stderr_tail = "Traceback\nValueError: boom\n";
  one.just_above = true;
  std::string text = failure_text(one);
  CHECK(has(text, "  the end of its stderr is just above: ValueError: boom\n"));
  CHECK_FALSE(has(text, "Traceback"));
  one.error_file = ErrorFile{.path = "/e", .traceback = "Traceback\nValueError: boom\n"};
  CHECK_FALSE(has(failure_text(one), "Traceback"));
  one.error_file->traceback = "Traceback\nOSError: another\n";
  CHECK(has(failure_text(one), "  | Traceback\n  | OSError: another\n"));
}

TEST_CASE("failure_text: content of both error file and stderr is shown once", "[launch]") {
  WorkerFailure one = failure(Exited{1});
  one.stderr_tail = "step 3\nTraceback\n[rank5]: ValueError: boom\n";
  one.error_file =
      ErrorFile{.path = "/e", .message = "ValueError: boom", .traceback = "Traceback\nValueError: boom\n"};
  std::string text = failure_text(one);
  CHECK(has(text, "  error file: /e\n  | Traceback\n  | ValueError: boom\n"));
  CHECK_FALSE(has(text, "stderr"));
  one.error_file->traceback.clear();
  text = failure_text(one);
  CHECK(has(text, "  error file: /e\n  last lines of its stderr:\n  | step 3\n  | Traceback\n"));
}

TEST_CASE("failure_text: a file that is removed with the job is not named", "[launch]") {
  WorkerFailure one = failure(Exited{1});
  one.error_file = ErrorFile{.path = "/gone", .message = "boom", .stays = false};
  const std::string text = failure_text(one);
  CHECK(has(text, "  its error file:\n  | boom\n"));
  CHECK_FALSE(has(text, "/gone"));
}

TEST_CASE("failure_text: LibTorch's frames are not shown", "[launch]") {
  WorkerFailure one = failure(Exited{1});
  one.error_file = ErrorFile{.path = "/e",
                             .message =
                                 "bad shape\nException raised from f at g.cpp:1 (most recent call "
                                 "first):\nframe #0: c10::Error::Error() (0x7f in libc10.so)\n"};
  CHECK(has(failure_text(one), "  | bad shape\n"));
  CHECK_FALSE(has(failure_text(one), "frame #0"));
}

TEST_CASE("failure_text: an invalid error file is shown, with a note", "[launch]") {
  WorkerFailure one = failure(Exited{1});
  one.error_file = ErrorFile{.path = "/e", .message = "half {", .valid = false};
  CHECK(has(failure_text(one), "(not the expected JSON; its text follows)\n  | half {\n"));
}

TEST_CASE("failure_text: unknown parts are left out", "[launch]") {
  const std::string text = failure_text(failure(Exited{1}));
  CHECK_FALSE(has(text, "error file"));
  CHECK_FALSE(has(text, "last lines"));
}

TEST_CASE("failure_text: for a missing module it names the Python and why it was chosen", "[launch]") {
  WorkerFailure one = failure(Exited{1});
  const auto is_named = [&] {
    return has(failure_text(one, "/usr/bin/python3 (PATH)"),
               "  its Python: /usr/bin/python3 (PATH); choose another with --python\n");
  };
  one.stderr_tail = "ModuleNotFoundError: No module named 'torch'\n";
  CHECK(is_named());
  CHECK_FALSE(has(failure_text(one), "its Python"));
  one.stderr_tail = "ValueError: no\n";
  CHECK_FALSE(is_named());
  one.error_file = ErrorFile{.message = "ModuleNotFoundError: No module named 'x'"};
  CHECK(is_named());
}

TEST_CASE("failure_text: a single process that misses its rank is told how to get one", "[launch]") {
  WorkerFailure lone = failure(Exited{1});
  lone.stderr_tail =
      "ValueError: Error initializing torch.distributed using env:// rendezvous: environment variable RANK "
      "expected, but not set\n";
  CHECK(has(failure_text(lone),
            "\n  a single process gets no rank, as from accelerate: --nproc_per_node 1 gives it one;"));
  lone.stderr_tail = "ValueError: RANK\n";
  CHECK_FALSE(has(failure_text(lone), "a single process"));
}

TEST_CASE("failure_text: an OOM kill comes with the limit and the peak", "[launch]") {
  WorkerFailure killed = failure(Signaled{SIGKILL});
  killed.cgroup_memory = {.limit = std::uint64_t{2} << 30U, .peak = std::uint64_t{1} << 30U};
  CHECK_FALSE(has(failure_text(killed), "limit"));
  killed.out_of_memory = true;
  CHECK(has(failure_text(killed), "\n  memory of its cgroup: limit 2.0 GiB, peak 1.0 GiB\n"));
  killed.cgroup_memory.reset();
  CHECK(has(failure_text(killed), "no cgroup here limits its memory"));
}

TEST_CASE("failure_text: a worker that met a limit is told which", "[launch]") {
  WorkerFailure one = failure(Exited{1});
  CHECK_FALSE(has(failure_text(one), "ulimit"));
  one.stderr_tail = "OSError: [Errno 24] Too many open files: 'x'\n";
  CHECK(has(failure_text(one), "\n  raise the limit of open files: ulimit -n\n"));
  one.stderr_tail = "RuntimeError: can't start new thread\n";
  CHECK(has(failure_text(one), "\n  raise the limit of processes: ulimit -u, or pids.max of the cgroup\n"));
}

TEST_CASE("failure_text: a worker's lines move no cursor and set no color", "[launch]") {
  WorkerFailure one = failure(Exited{1});
  one.stderr_tail = "10%\r\x1b[2J\x1b[31mError\x1b[0m: \x07no\n";
  CHECK(failure_text(one).ends_with("  | Error: \\x07no\n"));
  one.just_above = true;
  CHECK(failure_text(one).ends_with("just above: Error: \\x07no\n"));
  one.stderr_tail.clear();
  one.error_file = ErrorFile{.message = "\x1b[Hgone"};
  CHECK(failure_text(one).ends_with("  | gone\n"));
}

}  // namespace text_reporter_failure_test
