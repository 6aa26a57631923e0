// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "acc/base/files.hpp"

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

/// `Xid 79 (fallen off the bus) of the GPU at 0000:1b:00`; without the meaning if it is no fault.
std::string to_string(const Xid& xid);

/// Where the kernel log is; tests pass others.
struct KernelLogPaths {
  /// Exists while the NVIDIA driver is loaded.
  std::filesystem::path driver = "/proc/driver/nvidia";
  /// The first one that can be read counts.
  std::vector<std::filesystem::path> logs = {"/dev/kmsg", "/var/log/kern.log", "/var/log/messages",
                                             "/var/log/syslog"};
};

/// The kernel log: /dev/kmsg, else the end of a file of syslog. Absent: neither is readable for this user.
std::optional<std::string> read_kernel_log();

/// Finds the faults of this machine's GPUs since its construction. Without the NVIDIA driver it opens
/// nothing.
class XidWatch {
 public:
  explicit XidWatch(const KernelLogPaths& paths = {});

  /// Each different fault since construction, in order. Absent: no driver was loaded then, or no kernel log
  /// is readable for this user.
  std::optional<std::vector<Xid>> faults();

 private:
  void add_new();
  void begin_again_if_truncated();

  std::filesystem::path path_ = {};
  /// Its offset is the end of what was read.
  Descriptor log_ = {};
  /// The first bytes of a file.
  std::string head_ = {};
  /// Of the last line, whose end was not there yet.
  std::string unfinished_ = {};
  std::vector<Xid> faults_ = {};
};

}  // namespace acc::launcher
