// SPDX-License-Identifier: Apache-2.0
#include "acc/control/process_table.hpp"

#include <time.h>
#include <unistd.h>

#include <thread>

#include "support/catch.hpp"
#include "support/temporary_folder.hpp"

namespace process_table_test {

using namespace acc;
using namespace acc::launcher;
using namespace acc::test;
using namespace std::chrono_literals;

namespace {

// pid, name, state, parent; 5 + 6 + 7 + 8 ticks of CPU; 3 threads; started 200 ticks after the machine.
std::string stat_line(const std::string& begin) {
  return begin + " 1 1 0 -1 4194304 0 0 0 0 5 6 7 8 20 0 3 0 200 4096 16 18446744073709551615 0 0\n";
}

template <class Table>
concept HasTree = requires(Table table) { std::forward<Table>(table).tree(1); };
// What is found is the table's, and a loop over ProcessTable::read().tree(pid) would see it freed.
static_assert(HasTree<const ProcessTable&> && !HasTree<ProcessTable>);

}  // namespace

TEST_CASE("process_table: a stat line is parsed with any process name", "[control]") {
  const auto process = parse_process_stat(stat_line("42 (a) b ( c) S 7"));
  REQUIRE(process);
  CHECK(process->pid == 42);
  CHECK(process->name == "a) b ( c");
  CHECK(process->state == 'S');
  CHECK(process->parent == 7);
  CHECK(process->threads == 3);
  const auto tick = 1000ms / ::sysconf(_SC_CLK_TCK);
  CHECK(process->cpu_time == 26 * tick);
  CHECK(process->cpu_time_of_children == 15 * tick);
  CHECK(process->started == 200 * tick);
  CHECK(process->resident_bytes == 16 * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)));
  CHECK_FALSE(parse_process_stat(""));
  CHECK_FALSE(parse_process_stat("42 (short) S 7"));
}

TEST_CASE(
    "process_table: the CPU time of a process is known to the nanosecond, also of its threads that have "
    "ended",
    "[control]") {
  const auto cpu_time = [] {
    timespec now = {};
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
  };
  const auto begin = cpu_time();
  std::thread([&] {
    while (cpu_time() - begin < 1ms) {
    }
  }).join();
  const auto end = cpu_time();
  const auto exact = exact_cpu_time({.pid = ::getpid(), .cpu_time_of_children = 20ms});
  CHECK(exact - 20ms >= end);
  CHECK(exact - 20ms <= cpu_time());
  constexpr pid_t kNoPid = (1 << 22) + 1;  // beyond the highest of the kernel
  // One that has ended has what was read before.
  CHECK(exact_cpu_time({.pid = kNoPid, .cpu_time = 30ms}) == 30ms);
}

TEST_CASE("process_table: a tree begins with its root and leaves others out", "[control]") {
  ProcessTable table;
  for (const auto& [pid, parent] :
       std::vector<std::pair<pid_t, pid_t>>{{9, 5}, {5, 1}, {6, 1}, {7, 5}, {8, 7}})
    table.add({.pid = pid, .parent = parent});
  std::vector<pid_t> pids;
  for (const ProcessStat* process : table.tree(5)) pids.push_back(process->pid);
  CHECK(pids == std::vector<pid_t>{5, 9, 7, 8});
  CHECK(table.tree(4711).empty());
  std::set<pid_t> counted = {pids.back()};
  CHECK(table.tree(5, &counted).size() == pids.size() - 1);
  CHECK(counted == std::set<pid_t>(pids.begin(), pids.end()));
  CHECK(table.tree(5, &counted).empty());
}

TEST_CASE("process_table: the processes of this machine are there", "[control]") {
  const ProcessTable table = ProcessTable::read();
  const ProcessStat* self = table.find(::getpid());
  REQUIRE(self != nullptr);
  CHECK(self->parent == ::getppid());
  CHECK(self->started <= time_since_boot());
  CHECK(memory_of(*self) > 0);
  CHECK_FALSE(read_process(0));
}

TEST_CASE("process_table: memory is the PSS if the kernel tells it", "[control]") {
  const TemporaryFolder proc;
  const ProcessStat process{.pid = 42, .resident_bytes = 5000};
  CHECK(memory_of(process, proc.path()) == 5000);
  proc.write("42/smaps_rollup",
             "0-1 ---p 0 00:00 0 [rollup]\nRss:     900 kB\nPss:     123 kB\nPss_Anon: 1 kB\n");
  CHECK(memory_of(process, proc.path()) == 123 * 1024);
}

}  // namespace process_table_test
