// SPDX-License-Identifier: Apache-2.0
#include "acc/control/python_position.hpp"

#include "support/catch.hpp"

namespace python_position_test {

using namespace acc::launcher;

namespace {

std::string dump(const std::string& frames) {
  return "Process 7: python train.py\nPython v3.11.7 (/usr/bin/python3.11)\n\n"
         "Thread 8 (active): \"loader\"\n    read (/home/me/other.py:99)\n"
         "Thread 7 (idle): \"MainThread\"\n" +
         frames;
}

const std::string kTorch = "/env/lib/python3.11/site-packages/torch/";

PythonPosition position(const std::string& frames) {
  return position_of_main_thread(dump(frames)).value_or(PythonPosition());
}

}  // namespace

TEST_CASE("python_position: the innermost line of the script, and what it calls there", "[control]") {
  CHECK(position("    load (/home/me/train.py:3)\n    <module> (/home/me/train.py:9)\n") ==
        PythonPosition{.line = "train.py:3"});
  CHECK(position("    all_reduce (" + kTorch + "distributed/distributed_c10d.py:3075)\n" +
                 "    _logger.<locals>.wrapper (" + kTorch + "distributed/c10d_logger.py:83)\n" +
                 "    <module> (/home/me/train.py:4)\n") ==
        PythonPosition{.line = "train.py:4", .call = "all_reduce", .waits = true});
  CHECK(position("    wait (/usr/lib/python3.11/threading.py:327)\n    main (/home/me/a b.py:4)\n") ==
        PythonPosition{.line = "a b.py:4", .call = "wait"});
  CHECK(position("    _engine_run_backward (" + kTorch + "autograd/graph.py:8)\n    backward (" + kTorch +
                 "_tensor.py:6)\n    step (/home/me/train.py:5)\n    run (" + kTorch +
                 "trainer.py:1)\n    <module> (/home/me/train.py:9)\n") ==
        PythonPosition{.line = "train.py:5", .call = "backward", .waits = true});
  CHECK_FALSE(position_of_main_thread("Error: Permission denied"));
}

TEST_CASE("python_position: a program that is a library's is where its outermost frame is", "[control]") {
  CHECK(position("    get (/usr/lib/python3.11/queue.py:1)\n    <module> (" + kTorch + "run.py:7)\n") ==
        PythonPosition{.line = "run.py:7", .call = "get"});
}

TEST_CASE("python_position: the last traceback counts", "[control]") {
  const std::string text =
      "Traceback (most recent call last):\n  File \"/home/me/train.py\", line 1, in <module>\n"
      "\nDuring handling of the above exception, another exception occurred:\n\n"
      "[rank0]: Traceback (most recent call last):\n[rank0]:   File \"/home/me/train.py\", line 7, in main\n"
      "[rank0]:     dist.barrier()\n[rank0]:   File \"" +
      kTorch + "distributed/distributed_c10d.py\", line 2, in barrier\n[rank0]: RuntimeError: lost\n";
  CHECK(position_of_traceback(text) ==
        PythonPosition{.line = "train.py:7", .call = "barrier", .waits = true});
  CHECK_FALSE(position_of_traceback("terminate called\n"));
}

TEST_CASE("python_position: library files are shown as they are imported", "[control]") {
  CHECK(shorten_python_stacks(
            "Python v3.11.7 (/usr/bin/python3.11)\n    wait (/usr/lib/python3.11/threading.py:3)\n"
            "    f (" +
            kTorch + "_tensor.py:6)\n    g (/home/me/train.py:5)") ==
        "Python v3.11.7 (/usr/bin/python3.11)\n    wait (threading.py:3)\n    f (torch/_tensor.py:6)\n"
        "    g (/home/me/train.py:5)");
}

namespace {

Stragglers stragglers_at(const std::map<int, PythonPosition>& positions,
                         const std::map<int, std::string>& ended = {}) {
  std::map<int, RankStanding> standing;
  for (const auto& [rank, position] : positions) standing[rank] = standing_of(position);
  return find_stragglers(standing, ended);
}

}  // namespace

TEST_CASE("python_position: the rank that did not call is named first, with two ranks too", "[control]") {
  const PythonPosition waiting = {.line = "train.py:4", .call = "all_reduce", .waits = true};
  const PythonPosition working = {.line = "train.py:6"};
  const Stragglers four = stragglers_at({{0, waiting}, {1, working}, {2, waiting}, {3, waiting}});
  CHECK(four.text == "rank 1 is at train.py:6; ranks 0, 2, 3 wait in all_reduce at train.py:4");
  CHECK(four.ranks == std::vector{1});
  // Also where only one did call.
  const Stragglers three = stragglers_at({{0, waiting}, {1, working}, {2, working}, {3, working}});
  CHECK(three.text == "ranks 1-3 are at train.py:6; rank 0 waits in all_reduce at train.py:4");
  CHECK(three.ranks == std::vector{1, 2, 3});
  CHECK(stragglers_at({{0, waiting}, {1, working}}).ranks == std::vector{1});
  CHECK(stragglers_at({{0, waiting}, {1, waiting}}).text == "ranks 0, 1 wait in all_reduce at train.py:4");
  CHECK(stragglers_at({{0, waiting}, {1, waiting}}).ranks.empty());
  CHECK(stragglers_at({{0, waiting}}, {{1, "exit code 0"}}).text ==
        "rank 1 has ended with exit code 0; rank 0 waits in all_reduce at train.py:4");
  CHECK(stragglers_at({}, {{1, "exit code 0"}}).text.empty());
}

TEST_CASE("python_position: names of another program move no cursor", "[control]") {
  const std::string text =
      "Traceback (most recent call last):\n  File \"/home/me/a\x1b[2Jb.py\", line 5, in f\n";
  const auto position = position_of_traceback(text);
  REQUIRE(position);
  CHECK(to_string(*position) == "at a\\x1b[2Jb.py:5");
  const PythonPosition hostile = {.line = "train.py:5", .call = "g\x1b[2J"};
  CHECK(to_string(hostile) == "in g\\x1b[2J at train.py:5");
}

TEST_CASE("python_position: of ranks in different calls the fewest are first", "[control]") {
  const PythonPosition sum = {.line = "train.py:4", .call = "all_reduce", .waits = true};
  const PythonPosition copy = {.line = "train.py:8", .call = "broadcast", .waits = true};
  const Stragglers stragglers = stragglers_at({{0, sum}, {1, sum}, {2, copy}});
  CHECK(stragglers.text ==
        "rank 2 waits in broadcast at train.py:8; ranks 0, 1 wait in all_reduce at train.py:4");
  CHECK(stragglers.ranks == std::vector{2});
}

}  // namespace python_position_test
