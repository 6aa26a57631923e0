// SPDX-License-Identifier: Apache-2.0
#include "acc/preflight/kernel_log.hpp"

#include <filesystem>

#include "support/catch.hpp"
#include "support/temporary_folder.hpp"

namespace kernel_log_test {

using namespace acc::launcher;

TEST_CASE("kernel_log: finds each Xid with its GPU, once", "[preflight]") {
  CHECK(
      find_xids("6,1,2,-;usb 1-1: new device\n"
                "3,2,9,-;NVRM: Xid (PCI:0000:1b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off "
                "the bus.\n"
                "3,3,9,-;NVRM: Xid (PCI:0000:1b:00): 79, pid=7, GPU has fallen off the bus.\n"
                "3,4,9,-;NVRM: Xid (PCI:0000:1c:00): 13, pid=8, Graphics Exception\n") ==
      std::vector<Xid>{{79, "0000:1b:00"}, {13, "0000:1c:00"}});
}

TEST_CASE("kernel_log: what was before the last boot does not count", "[preflight]") {
  CHECK(find_xids("kernel: NVRM: Xid (PCI:0000:1b:00): 48, DBE\n"
                  "kernel: [    0.000000] Linux version 6.1.0-18-amd64\n"
                  "kernel: NVRM: Xid (PCI:0000:1c:00): 94, Contained\n") ==
        std::vector<Xid>{{94, "0000:1c:00"}});
}

TEST_CASE("kernel_log: only the kernel says that it has started", "[preflight]") {
  const std::string before = "kernel: NVRM: Xid (PCI:0000:1b:00): 48, DBE\n";
  for (const std::string boot :
       {"5,0,0,-;Linux version 6.1.0", "5,0,0,-,caller=T0;Linux version 6.1.0",
        "Dec  1 00:00:00 host kernel: Linux version 6.1.0",
        "Dec  1 00:00:00 host kernel: [    0.000000] Linux version 6.1.0",
        "2026-12-01T00:00:00.123456+00:00 host kernel: [    0.000000][    T0] Linux version 6.1.0",
        "Dec  1 00:00:00 host kernel: <5>[    0.000000] Linux version 6.1.0",
        "<5>1 2026-12-01T00:00:00.1+00:00 host kernel - - - [    0.000000] Linux version 6.1.0",
        "<5>1 2026-12-01T00:00:00.1+00:00 host kernel - - - Linux version 6.1.0",
        "[    0.000000] Linux version 6.1.0"}) {
    INFO(boot);
    CHECK(find_xids(before + boot + "\n").empty());
  }
  for (const std::string other :
       {"12,9,9,-;Linux version 6.1.0", "6,9,9,-;vm1: [    0.000000] Linux version 6.1.0",
        "Dec  1 00:00:00 host vm1: Linux version 6.1.0",
        "Dec  1 00:00:00 host vm1: kernel: Linux version 6.1.0",
        "<13>1 2026-12-01T00:00:00.1+00:00 host vm1 - - - [    0.000000] Linux version 6.1.0",
        "Dec  1 00:00:00 host console[7]: [    0.000000] Linux version 6.1.0",
        "Dec  1 00:00:00 host kernel: audit: comm=\"Linux version \"", "Linux version 6.1.0"}) {
    INFO(other);
    CHECK(find_xids(before + other + "\n").size() == 1);
  }
}

TEST_CASE("kernel_log: lines that are cut are no Xid", "[preflight]") {
  CHECK(find_xids("NVRM: Xid (PCI:0000:1b").empty());
  CHECK(find_xids("NVRM: Xid (PCI:0000:1b:00): ").empty());
  CHECK(find_xids("").empty());
}

TEST_CASE("kernel_log: faults of a GPU are told from mistakes of programs", "[preflight]") {
  CHECK(is_fault({79, ""}));
  CHECK(is_fault({48, ""}));
  CHECK_FALSE(is_fault({31, ""}));
}

TEST_CASE("kernel_log: an Xid as text says what it means if it is a fault", "[preflight]") {
  CHECK(to_string(Xid{79, "0000:1b:00"}) == "Xid 79 (fallen off the bus) of the GPU at 0000:1b:00");
  CHECK(to_string(Xid{31, "0000:1b:00"}) == "Xid 31 of the GPU at 0000:1b:00");
}

namespace {

const std::string kLost = "kernel: NVRM: Xid (PCI:0000:1b:00): 79, GPU has fallen off the bus.\n";
const std::string kDoubleBit = "kernel: NVRM: Xid (PCI:0000:1c:00): 48, DBE\n";
const std::string kProgram = "kernel: NVRM: Xid (PCI:0000:1d:00): 31, MMU Fault\n";
const std::vector<Xid> kLostGpu = {{79, "0000:1b:00"}};
const std::vector<Xid> kBoth = {{79, "0000:1b:00"}, {48, "0000:1c:00"}};

/// A machine with the NVIDIA driver, whose kernel log is `log`.
struct Machine {
  explicit Machine(const std::string& log) { folder.write("log", log); }

  acc::test::TemporaryFolder folder = {};
  KernelLogPaths paths = {.driver = folder.path(),
                          .logs = {folder.path() / "missing", folder.path() / "log"}};
};

}  // namespace

TEST_CASE("XidWatch: finds the faults since its construction, each once", "[preflight]") {
  const Machine machine(kDoubleBit);
  XidWatch watch(machine.paths);
  CHECK(watch.faults() == std::vector<Xid>{});
  machine.folder.write("log", kDoubleBit + kProgram + kLost + kLost);
  CHECK(watch.faults() == kLostGpu);
  CHECK(watch.faults() == kLostGpu);
  machine.folder.write("log", kDoubleBit + kProgram + kLost + kLost + kDoubleBit);
  CHECK(watch.faults() == kBoth);
}

TEST_CASE("XidWatch: reads on in a log that was rotated", "[preflight]") {
  const Machine machine(kDoubleBit + kProgram);
  XidWatch watch(machine.paths);
  machine.folder.write("log", kDoubleBit + kProgram + kLost);
  SECTION("to another file") {
    std::filesystem::rename(machine.folder.path() / "log", machine.folder.path() / "log.1");
    machine.folder.write("log", kDoubleBit);
    CHECK(watch.faults() == kBoth);
  }
  SECTION("by truncation") {
    CHECK(watch.faults() == kLostGpu);
    machine.folder.write("log", kDoubleBit);
    CHECK(watch.faults() == kBoth);
  }
}

TEST_CASE("XidWatch: reads on in a log that was truncated and has grown beyond what was read",
          "[preflight]") {
  const Machine machine(kProgram);
  XidWatch watch(machine.paths);
  machine.folder.write("log", kLost + kProgram + kDoubleBit);
  CHECK(watch.faults() == kBoth);
}

TEST_CASE("XidWatch: a line may come in parts", "[preflight]") {
  const Machine machine("");
  XidWatch watch(machine.paths);
  for (std::size_t size = 0; size < kLost.size(); ++size) {
    machine.folder.write("log", kLost.substr(0, size));
    CHECK(watch.faults() == std::vector<Xid>{});
  }
  machine.folder.write("log", kLost);
  CHECK(watch.faults() == kLostGpu);
}

TEST_CASE("XidWatch: without the driver or a readable log nothing is known", "[preflight]") {
  Machine machine("");
  machine.paths.logs.pop_back();
  CHECK_FALSE(XidWatch(machine.paths).faults());
  machine.paths.logs = {"/dev/null", machine.folder.path()};
  CHECK_FALSE(XidWatch(machine.paths).faults());
  const Machine without_driver("");
  XidWatch watch({.driver = without_driver.folder.path() / "none", .logs = without_driver.paths.logs});
  without_driver.folder.write("log", kLost);
  CHECK_FALSE(watch.faults());
}

}  // namespace kernel_log_test
