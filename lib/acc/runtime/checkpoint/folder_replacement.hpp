// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>

namespace acc::detail {

/// Replaces a folder atomically: a new folder is filled beside it and then renamed. Readers see the complete
/// old or the complete new folder, also when the process or the machine dies at any moment. Entries of the
/// old folder that the new one lacks are kept in the new one, unless `is_replaced` names them.
class FolderReplacement {
 public:
  /// Does not touch the disk. Throws Error{usage} for the working folder or one of its parents.
  FolderReplacement(const std::filesystem::path& target,
                    std::function<bool(const std::string& name)> is_replaced);

  /// The folder to fill.
  const std::filesystem::path& temporary() const { return temporary_; }

  /// Removes the remains of earlier attempts and creates the new folder. Throws Error{system}.
  void begin();

  /// Replaces the old folder by the new one. Throws Error{system}; the old one is then unchanged.
  void publish();

  /// Removes the new folder.
  void abandon() noexcept;

 private:
  void keep_others() const;
  void exchange() const;

  std::filesystem::path target_;
  std::filesystem::path temporary_;
  std::filesystem::path old_;
  std::function<bool(const std::string&)> is_replaced_;
};

/// The complete folder: `target`, or the old one beside it, when a process was killed between two renames on
/// a file system that cannot exchange folders. `target` when neither exists.
std::filesystem::path whole_folder(const std::filesystem::path& target);

/// Renames a folder, then removes it: it is never visible in part.
void remove_folder(const std::filesystem::path& folder);

}  // namespace acc::detail
