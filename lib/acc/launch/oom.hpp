// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace acc::launcher {

/// Where the kernel tells about cgroups; tests name others.
struct CgroupPlaces {
  std::filesystem::path membership = "/proc/self/cgroup";
  std::filesystem::path root = "/sys/fs/cgroup";
};

/// How many processes of our own cgroup the kernel has killed for lack of memory, from cgroup v2's
/// memory.events or v1's memory.oom_control. Absent where neither tells.
std::optional<std::uint64_t> count_oom_kills(const CgroupPlaces& places = {});

/// Remembers the count, so that a kill during the job can be told from an older one.
class OomWatch {
 public:
  explicit OomWatch(CgroupPlaces places = {})
      : places_(std::move(places)), before_(count_oom_kills(places_)) {}

  /// The kernel has killed for memory since this object was made.
  bool has_killed() const;

 private:
  CgroupPlaces places_;
  std::optional<std::uint64_t> before_;
};

}  // namespace acc::launcher
