// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "acc/base/error.hpp"
#include "acc/launch/memory_left.hpp"

namespace acc::launcher {

/// What `--memory-checkpoints` asks for.
struct MemoryRequest {
  std::uint64_t bytes = 0;
  /// `--memory-checkpoints 8GB`, or the variable or line that says so.
  std::string origin = {};
};

/// Why the request is more than the machine, or a memory limit of this job, leaves; absent: it is not.
std::optional<Problem> lack_of_memory(const MemoryRequest& request, const std::optional<MemoryLeft>& machine,
                                      const std::optional<MemoryLeft>& cgroup);

/// The folder of a job in memory, ACC_MEMORY_FOLDER, which outlives its workers: files there survive
/// restarts, and go with the job.
class MemoryFolder {
 public:
  /// For a job without one.
  MemoryFolder() = default;

  /// In `shared_memory` if that has room, else on a file system in memory that is mounted for this process
  /// and those it starts, if it may do that. Throws Error{system} where the machine, a limit or the file
  /// system has no room. `before` is called with the path before it is created.
  static MemoryFolder make(const MemoryRequest& request,
                           const std::function<void(const std::filesystem::path&)>& before,
                           const std::filesystem::path& shared_memory = "/dev/shm");

  /// Empty: there is none.
  const std::filesystem::path& path() const { return path_; }

  /// Returns whether nothing is left; it may be called again.
  bool remove() const;

 private:
  std::filesystem::path path_ = {};
  bool is_mounted_ = false;
};

}  // namespace acc::launcher
