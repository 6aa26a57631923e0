// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>
#include <optional>

#include "acc/base/file_id.hpp"
#include "acc/plan/launch_plan.hpp"

namespace acc::launcher {

/// The folder of one job, laid out as torchrun 2.11 does:
/// `<base>/<run_id>_XXXXXXXX/attempt_N/<local_rank>/{stdout.log,stderr.log,error.json}`. The pages in which
/// workers say how far they are (base/progress_page.hpp) are in memory: in `attempt_N`, else elsewhere.
class LogFolder {
 public:
  /// For a job without files.
  LogFolder() = default;

  /// Creates base and job folder if the plan needs them. The base is plan.output.log_dir, or a new folder
  /// that remove_temporary() removes: under the inherited TMPDIR, else in memory if no stream is logged, else
  /// under /tmp. Throws Error{system}. `before` is called with the path of a temporary folder before it is
  /// created. Workers make `pages` when they need it, where this folder is not in memory.
  static LogFolder make(
      const LaunchPlan& plan,
      const std::function<void(const std::filesystem::path&)>& before = [](const std::filesystem::path&) {},
      const std::filesystem::path& pages = {});

  /// `<run folder>/attempt_N`, empty if the job has no files.
  std::filesystem::path attempt(int number) const;

  /// The page of worker `local_rank` is this path and its number; empty: there is no folder in memory.
  std::string page_prefix(int attempt) const;

  /// Makes the folder of the pages before the first worker needs it; absent: it cannot be made.
  std::optional<FileId> make_page_folder(int attempt) const;

  /// Creates `attempt_N/<local_rank>` for each worker, and removes an older `attempt_N` and all pages.
  /// Throws Error{system}.
  void make_attempt(int number, int workers) const;

  const std::filesystem::path& run_folder() const { return run_folder_; }

  /// Whether the files of failed workers are kept: the user named the base, or asked for streams in files.
  bool stays_after_failure() const { return stays_; }

  /// Removes a base that make() chose itself, not one that the user named.
  void remove_temporary() const;

  /// Removes the pages.
  void remove_pages() const;

 private:
  std::filesystem::path run_folder_ = {};
  std::filesystem::path temporary_ = {};
  std::filesystem::path pages_ = {};
  bool in_memory_ = false;
  int workers_ = 0;
  bool stays_ = true;
};

}  // namespace acc::launcher
