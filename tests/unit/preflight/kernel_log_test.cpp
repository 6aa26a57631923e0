// SPDX-License-Identifier: Apache-2.0
#include "acc/preflight/kernel_log.hpp"

#include "support/catch.hpp"

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

}  // namespace kernel_log_test
