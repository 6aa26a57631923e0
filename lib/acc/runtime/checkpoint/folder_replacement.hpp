// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <optional>

namespace acc::detail {

/// Replaces a folder atomically: a new folder is filled beside it and then renamed. Readers see either the
/// complete old or the complete new folder, even if the process or the machine fails at any moment. Entries
/// of the old folder for which `is_replaced` is false are kept in the new one.
class FolderReplacement {
 public:
  /// Does not change the disk. Throws Error{usage} for the working folder or one of its parents, for a mount
  /// point, and for a name that leaves no room for that of the new folder.
  FolderReplacement(const std::filesystem::path& target,
                    std::function<bool(const std::string& name)> is_replaced);

  /// The folder to fill.
  const std::filesystem::path& temporary() const { return temporary_; }

  /// Removes the new folder that an earlier attempt left. Throws Error{system}.
  void remove_leftover() const;

  /// Removes what earlier attempts left and creates the new folder. If it is to replace one, only this user
  /// may enter it until it is published. Throws Error{system}.
  void begin();

  /// Creates the new folder unless it is there: another machine has then created it on the same disk. Throws
  /// Error{system}.
  void begin_if_absent();

  /// Whether this object created the new folder.
  bool has_begun() const { return has_begun_; }

  /// Replaces the old folder with the new one, which keeps modes and owners of what has the same name, as far
  /// as this process may. Throws Error{system}; the old one is then unchanged.
  void publish();

  /// Removes the new folder if this object created it.
  void abandon() noexcept;

 private:
  void create();
  void restore_old() const;
  void keep_others() const;
  void exchange() const;

  std::filesystem::path target_;
  std::filesystem::path temporary_;
  std::filesystem::path old_;
  bool has_begun_ = false;
  std::optional<mode_t> old_mode_;
  std::function<bool(const std::string&)> is_replaced_;
};

/// The complete folder: `target`, or the old one beside it, when a process was killed between two renames on
/// a file system that cannot exchange folders. `target` when neither exists.
std::filesystem::path complete_folder(const std::filesystem::path& target);

/// Renames a folder, then removes it: it is never visible in part, unless it is of a container's image, where
/// folders cannot be renamed. Of a symbolic link, removes the link.
void remove_folder(const std::filesystem::path& folder);

}  // namespace acc::detail
