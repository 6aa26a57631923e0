// SPDX-License-Identifier: Apache-2.0
#include "acc/control/python_place.hpp"

#include "support/catch.hpp"

namespace python_place_test {

using namespace acc::launcher;

namespace {

std::string dump(const std::string& frames) {
  return "Process 7: python train.py\nPython v3.11.7 (/usr/bin/python3.11)\n\n"
         "Thread 8 (active): \"loader\"\n    read (/home/me/other.py:99)\n"
         "Thread 7 (idle): \"MainThread\"\n" +
         frames;
}

const std::string kTorch = "/env/lib/python3.11/site-packages/torch/";

PythonPlace place(const std::string& frames) {
  return place_of_main_thread(dump(frames)).value_or(PythonPlace());
}

}  // namespace

TEST_CASE("python_place: the innermost line of the script, and what it calls there", "[control]") {
  CHECK(place("    load (/home/me/train.py:3)\n    <module> (/home/me/train.py:9)\n") ==
        PythonPlace{.line = "train.py:3"});
  CHECK(place("    all_reduce (" + kTorch + "distributed/distributed_c10d.py:3075)\n" +
              "    _logger.<locals>.wrapper (" + kTorch + "distributed/c10d_logger.py:83)\n" +
              "    <module> (/home/me/train.py:4)\n") ==
        PythonPlace{.line = "train.py:4", .call = "all_reduce", .waits = true});
  CHECK(place("    wait (/usr/lib/python3.11/threading.py:327)\n    main (/home/me/a b.py:4)\n") ==
        PythonPlace{.line = "a b.py:4", .call = "wait"});
  CHECK(place("    _engine_run_backward (" + kTorch + "autograd/graph.py:8)\n    backward (" + kTorch +
              "_tensor.py:6)\n    step (/home/me/train.py:5)\n    run (" + kTorch +
              "trainer.py:1)\n    <module> (/home/me/train.py:9)\n") ==
        PythonPlace{.line = "train.py:5", .call = "backward", .waits = true});
  CHECK_FALSE(place_of_main_thread("Error: Permission denied"));
}

TEST_CASE("python_place: a program that is a library's is where its outermost frame is", "[control]") {
  CHECK(place("    get (/usr/lib/python3.11/queue.py:1)\n    <module> (" + kTorch + "run.py:7)\n") ==
        PythonPlace{.line = "run.py:7", .call = "get"});
}

TEST_CASE("python_place: the last traceback counts", "[control]") {
  const std::string text =
      "Traceback (most recent call last):\n  File \"/home/me/train.py\", line 1, in <module>\n"
      "\nDuring handling of the above exception, another exception occurred:\n\n"
      "[rank0]: Traceback (most recent call last):\n[rank0]:   File \"/home/me/train.py\", line 7, in main\n"
      "[rank0]:     dist.barrier()\n[rank0]:   File \"" +
      kTorch + "distributed/distributed_c10d.py\", line 2, in barrier\n[rank0]: RuntimeError: lost\n";
  CHECK(place_of_traceback(text) == PythonPlace{.line = "train.py:7", .call = "barrier", .waits = true});
  CHECK_FALSE(place_of_traceback("terminate called\n"));
}

TEST_CASE("python_place: library files are shown as they are imported", "[control]") {
  CHECK(shorten_python_stacks(
            "Python v3.11.7 (/usr/bin/python3.11)\n    wait (/usr/lib/python3.11/threading.py:3)\n"
            "    f (" +
            kTorch + "_tensor.py:6)\n    g (/home/me/train.py:5)") ==
        "Python v3.11.7 (/usr/bin/python3.11)\n    wait (threading.py:3)\n    f (torch/_tensor.py:6)\n"
        "    g (/home/me/train.py:5)");
}

namespace {

Stragglers stragglers_at(const std::map<int, PythonPlace>& places,
                         const std::map<int, std::string>& ended = {}) {
  std::map<int, RankStanding> standing;
  for (const auto& [rank, place] : places) standing[rank] = standing_of(place);
  return find_stragglers(standing, ended);
}

}  // namespace

TEST_CASE("python_place: the rank that did not call is named first, with two ranks too", "[control]") {
  const PythonPlace waits = {.line = "train.py:4", .call = "all_reduce", .waits = true};
  const PythonPlace away = {.line = "train.py:6"};
  const Stragglers four = stragglers_at({{0, waits}, {1, away}, {2, waits}, {3, waits}});
  CHECK(four.text == "rank 1 is at train.py:6; ranks 0, 2, 3 wait in all_reduce at train.py:4");
  CHECK(four.ranks == std::vector{1});
  // Also where only one did call.
  const Stragglers one = stragglers_at({{0, waits}, {1, away}, {2, away}, {3, away}});
  CHECK(one.text == "ranks 1-3 are at train.py:6; rank 0 waits in all_reduce at train.py:4");
  CHECK(one.ranks == std::vector{1, 2, 3});
  CHECK(stragglers_at({{0, waits}, {1, away}}).ranks == std::vector{1});
  CHECK(stragglers_at({{0, waits}, {1, waits}}).text == "ranks 0, 1 wait in all_reduce at train.py:4");
  CHECK(stragglers_at({{0, waits}, {1, waits}}).ranks.empty());
  CHECK(stragglers_at({{0, waits}}, {{1, "exit code 0"}}).text ==
        "rank 1 has ended with exit code 0; rank 0 waits in all_reduce at train.py:4");
  CHECK(stragglers_at({}, {{1, "exit code 0"}}).text.empty());
}

TEST_CASE("python_place: names of another program move no cursor", "[control]") {
  const std::string text =
      "Traceback (most recent call last):\n  File \"/home/me/a\x1b[2Jb.py\", line 5, in f\n";
  const auto place = place_of_traceback(text);
  REQUIRE(place);
  CHECK(to_string(*place) == "at a\\x1b[2Jb.py:5");
  const PythonPlace called = {.line = "train.py:5", .call = "g\x1b[2J"};
  CHECK(to_string(called) == "in g\\x1b[2J at train.py:5");
}

TEST_CASE("python_place: of ranks in different calls the fewest are first", "[control]") {
  const PythonPlace sum = {.line = "train.py:4", .call = "all_reduce", .waits = true};
  const PythonPlace copy = {.line = "train.py:8", .call = "broadcast", .waits = true};
  const Stragglers found = stragglers_at({{0, sum}, {1, sum}, {2, copy}});
  CHECK(found.text == "rank 2 waits in broadcast at train.py:8; ranks 0, 1 wait in all_reduce at train.py:4");
  CHECK(found.ranks == std::vector{2});
}

}  // namespace python_place_test
