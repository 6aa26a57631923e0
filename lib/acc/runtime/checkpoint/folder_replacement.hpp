// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>

namespace acc {

/// A folder that is filled beside its place and put there in one step: whoever looks sees the old folder
/// whole or the new one whole, also when the process or the machine dies at any moment. Entries of the old
/// folder that the new one does not have and `is_replaced` does not name go over into the new one.
class FolderReplacement {
 public:
  /// Nothing is done yet. Throws Error{usage} for the working folder or one around it.
  FolderReplacement(const std::filesystem::path& target,
                    std::function<bool(const std::string& name)> is_replaced);

  /// Where the new folder is filled.
  const std::filesystem::path& temporary() const { return temporary_; }

  /// Removes what a killed process left of earlier attempts and makes the new folder. Throws Error{system}.
  void begin();

  /// The new folder is in its place when it returns, and the old one is gone. Throws Error{system}; the old
  /// one is then still there.
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

/// Where the folder is whole: `target`, or beside it, when a process was killed while it replaced the folder
/// on a file system that cannot exchange two. `target` when it is nowhere.
std::filesystem::path whole_folder(const std::filesystem::path& target);

/// Removes a folder so that no part of it is ever seen under its name.
void remove_folder(const std::filesystem::path& folder);

}  // namespace acc
