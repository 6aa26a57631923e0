// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <string>
#include <string_view>

namespace acc {

/// The role of a failure in its job.
enum class FailureRole {
  cause,
  /// This process only detected that another one was lost, or did not answer: launchers look for that one.
  consequence,
};

/// Writes the reason why this process is about to fail, with the time, to TORCHELASTIC_ERROR_FILE in the
/// format of torch's `record`: launchers report it as the job's failure. Does nothing where the variable is
/// not set or the file cannot be written. A later failure replaces an earlier one; after a consequence it is
/// a consequence, too.
void write_error_file(std::string_view message, FailureRole role = FailureRole::cause) noexcept;

namespace detail {

/// The type and text of an exception, without LibTorch's stack frames.
std::string describe_exception(const std::exception& error);

}  // namespace detail

/// Calls `act` and returns its result. An exception is written to the error file and thrown again: Python's
/// `record` around main. Exceptions that are caught within `act` are not failures.
///
///     int main(int argc, char** argv) { return acc::record([&] { return train(argc, argv); }); }
template <class Act>
auto record(Act act) {
  try {
    return act();
  } catch (const std::exception& error) {
    write_error_file(detail::describe_exception(error));
    throw;
  }
}

/// From now on an uncaught exception is written to the error file, too, before the program's own terminate
/// handler is called. Once for a process; an Accelerator calls it.
void record_uncaught_exceptions();

}  // namespace acc
