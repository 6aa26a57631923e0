// SPDX-License-Identifier: Apache-2.0
#include "acc/control/stacks.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "acc/base/descriptor.hpp"
#include "support/catch.hpp"
#include "support/temporary_folder.hpp"

using namespace acc;
using namespace acc::test;
namespace fs = std::filesystem;

namespace {

std::string stacks_with(const Environment& environment) {
  std::string text;
  const JobView job{
      .ranks = {{.rank = 2, .local_rank = 0, .pid = ::getpid()}, {.rank = 3, .ended = "exit code 1"}}};
  write_stacks(job, {.environment = environment}, [&](std::string_view more) { text += more; });
  return text;
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("stacks: every rank is told, and the tool that is missing", "[control]") {
  const TemporaryFolder empty;
  const std::string text = stacks_with({{"PATH", empty.path()}});
  CHECK(text.starts_with("rank 2: "));
  CHECK(has(text, "rank 3: exit code 1\n"));
  CHECK(has(text, "\nrank 2 (local rank 0, pid " + std::to_string(::getpid()) + "): "));
  CHECK(has(text, "native stacks: not shown, gdb is not on PATH\n"));
  CHECK_FALSE(has(text, "Python stacks"));
}

TEST_CASE("stacks: what the debugger says is shown", "[control]") {
  const TemporaryFolder tools;
  const fs::path gdb = tools.write("gdb", "#!/bin/sh\necho 'Thread 1 (LWP 1):'\necho '#0  0x1 in here ()'\n");
  ::chmod(gdb.c_str(), 0700);
  CHECK(has(stacks_with({{"PATH", tools.path()}}), "  native stacks:\n    Thread 1:\n      #0  here\n"));
  tools.write("gdb", "#!/bin/sh\necho 'ptrace: Operation not permitted.'\n");
  CHECK(has(stacks_with({{"PATH", tools.path()}}), "  native stacks: ptrace: Operation not permitted.\n"));
}

TEST_CASE("stacks: the flight recorder is asked to write where it listens", "[control]") {
  const TemporaryFolder folder;
  const std::string beginning = (folder.path() / "ask_").string();
  const Environment environment = {{"TORCH_NCCL_DEBUG_INFO_PIPE_FILE", beginning}};
  ask_for_flight_record(3, environment);  // nobody listens
  REQUIRE(::mkfifo((beginning + "3.pipe").c_str(), 0600) == 0);
  const Descriptor listens(::open((beginning + "3.pipe").c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  ask_for_flight_record(3, environment);
  char byte = 0;
  CHECK(::read(listens.get(), &byte, 1) == 1);
  folder.write("ask_4.pipe", "a file");
  ask_for_flight_record(4, environment);
  CHECK(folder.read("ask_4.pipe") == "a file");
}

TEST_CASE("stacks: NCCL's flight recorder is found where the worker was told to write it", "[control]") {
  const TemporaryFolder folder;
  const std::string beginning = (folder.path() / "trace_").string();
  const Environment environment = {{"TORCH_NCCL_DEBUG_INFO_TEMP_FILE", beginning}, {"HOME", folder.path()}};
  CHECK(find_flight_record(987654, environment).empty());
  folder.write("trace_987654", "");
  CHECK(find_flight_record(987654, environment) == folder.path() / "trace_987654");
  folder.write(".cache/torch/comm_lib_trace_rank_987655", "");
  CHECK(find_flight_record(987655, environment).filename() == "comm_lib_trace_rank_987655");
}
