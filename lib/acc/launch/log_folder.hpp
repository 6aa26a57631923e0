// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>

#include "acc/plan/launch_plan.hpp"

namespace acc::launcher {

/// The folder of one job, laid out as torchrun 2.11 does:
/// `<base>/<run_id>_XXXXXXXX/attempt_N/<local_rank>/{stdout.log,stderr.log,error.json}`.
class LogFolder {
 public:
  /// For a job without files.
  LogFolder() = default;

  /// Makes base and job folder when the plan has a use for them. The base is plan.output.log_dir, or a new
  /// folder that remove_temporary() takes away: under the inherited TMPDIR, else in memory when no stream is
  /// logged, else under /tmp. Throws Error{system}.
  /// `before` is called with the path of a temporary folder before it is created.
  static LogFolder make(
      const LaunchPlan& plan,
      const std::function<void(const std::filesystem::path&)>& before = [](const std::filesystem::path&) {});

  /// `<run folder>/attempt_N`, empty when nothing is kept.
  std::filesystem::path attempt(int number) const;

  /// Makes `attempt_N/<local_rank>` for each worker; what an earlier attempt of that number left goes. Throws
  /// Error{system}.
  void make_attempt(int number, int workers) const;

  const std::filesystem::path& run_folder() const { return run_folder_; }

  /// What failed workers left there is to stay: the person named the base, or asked for streams in files.
  bool stays_after_failure() const { return stays_; }

  /// Removes a base that make() chose itself; leaves one that the person named.
  void remove_temporary() const;

 private:
  std::filesystem::path run_folder_ = {};
  std::filesystem::path temporary_ = {};
  bool stays_ = true;
};

}  // namespace acc::launcher
