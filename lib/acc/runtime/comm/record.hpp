// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <string>
#include <string_view>
#include <vector>

namespace acc {

/// Whether a failure is the cause of a job's failure.
enum class FailureRole {
  cause,
  /// This process only noticed that another one was lost or did not answer; launchers look for the cause
  /// elsewhere.
  consequence,
};

/// Writes why this process is about to fail, with the time, to the file TORCHELASTIC_ERROR_FILE, in the
/// format of torch's `record`; launchers report it as the reason of the job's failure. Does nothing if the
/// variable is not set or the file cannot be written. A message of Gloo's, NCCL's or a store's that names a
/// lost peer is a consequence in any case. `lost_ranks`: those that a consequence is about, as far as they
/// are known. A later failure replaces an earlier one; once a consequence was written, later failures are
/// written as consequences of the same ranks, too.
void write_error_file(std::string_view message, FailureRole role = FailureRole::cause,
                      const std::vector<int>& lost_ranks = {}) noexcept;

namespace detail {

/// The type and text of an exception, without LibTorch's stack frames.
std::string describe_exception(const std::exception& error);

}  // namespace detail

/// Calls `function` and returns its result. An exception that leaves `function` is written to the error file
/// and rethrown, as by Python's `record` decorator.
///
///     int main(int argc, char** argv) { return acc::record([&] { return train(argc, argv); }); }
template <class Function>
auto record(Function function) {
  try {
    return function();
  } catch (const std::exception& error) {
    write_error_file(detail::describe_exception(error));
    throw;
  }
}

/// Makes uncaught exceptions, too, be written to the error file, before the program's terminate handler is
/// called. Repeated calls have no effect. An Accelerator calls it.
void record_uncaught_exceptions();

}  // namespace acc
