// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace acc::launcher {

/// A fault that the NVIDIA driver has written to the kernel log. NVML has no query for past ones.
struct Xid {
  int number = 0;
  /// Of the GPU, as in `0000:1b:00`.
  std::string pci_address = {};

  bool operator==(const Xid&) const = default;
};

/// Each different Xid in lines of the kernel log, in order; only those since the last boot that the text
/// shows.
std::vector<Xid> find_xids(std::string_view log);

/// Whether the number means a fault of a GPU or of its link. The others are mistakes of programs, or notes.
bool is_fault(const Xid& xid);

/// The kernel log: /dev/kmsg, else the end of a file of syslog. Absent: neither is readable for this user.
std::optional<std::string> read_kernel_log();

}  // namespace acc::launcher
