// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "acc/base/descriptor.hpp"

namespace acc::launcher {

/// `<runtime folder>/<id>.job`: names what a job would leave behind if all its processes were killed. It is
/// locked while one of them lives that was forked, not executed, since it was made.
class JobFile {
 public:
  /// Makes it in the first of `folders` that can be used. Without one the job runs all the same, and what it
  /// leaves stays.
  JobFile(const std::vector<std::filesystem::path>& folders, const std::string& id);
  ~JobFile() { remove(); }
  JobFile(const JobFile&) = delete;
  JobFile& operator=(const JobFile&) = delete;

  /// A folder that is about to be made and goes with the job.
  void add(const std::filesystem::path& folder);

  /// The job leaves nothing that is to be removed.
  void remove() const;

 private:
  Descriptor folder_ = {};
  Descriptor file_ = {};
  std::string name_ = {};
};

/// Removes what jobs of this user have left that were killed: their folders, sockets and files here. Never
/// throws; what cannot be removed stays for the next time.
void remove_leftovers(const std::vector<std::filesystem::path>& folders);

}  // namespace acc::launcher
