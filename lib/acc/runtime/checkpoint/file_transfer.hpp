// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "acc/runtime/checkpoint/saving_processes.hpp"

namespace acc::detail {

/// A file that another process sends. What fails is kept until finish(), so that the others need not wait.
class ReceivedFile {
 public:
  /// Of a process that needs none.
  ReceivedFile() = default;
  /// Creates missing folders, and replaces what is there.
  explicit ReceivedFile(const std::filesystem::path& file);

  void write(std::string_view piece);
  /// Throws Error{system} if it could not be written.
  void finish();

 private:
  std::filesystem::path path_ = {};
  std::ofstream stream_ = {};
};

/// Together: the process `from` sends the files of these names in `folder`, the same on all processes. Each
/// writes one to the path that `target_of` has for its name; an empty path: it needs none. Returns what
/// failed here when all are sent, so that nobody waits for a process that cannot write.
std::exception_ptr send_files(const std::vector<std::string>& names, const std::filesystem::path& folder,
                              int from, const SavingProcesses& processes,
                              const std::function<std::filesystem::path(const std::string& name)>& target_of);

/// Together: the process `from` sends the content of `file`. Throws what reading it throws there; on the
/// others Error{system}.
void send_file(const std::filesystem::path& file, int from, const SavingProcesses& processes,
               ReceivedFile& received);

}  // namespace acc::detail
