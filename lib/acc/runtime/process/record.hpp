// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <string>
#include <string_view>

namespace acc {

/// What a failure is to the others of the job.
enum class FailureRole {
  cause,
  /// This process only noticed that another one was lost, or did not answer: launchers look for that one.
  consequence,
};

/// Leaves in TORCHELASTIC_ERROR_FILE why this process is about to fail, with the time, in the form of torch's
/// `record`: launchers tell it as the job's reason. Nothing where the variable is not set or the file cannot
/// be written. A later failure replaces an earlier one; after a consequence it is a consequence, too.
void write_error_file(std::string_view message, FailureRole role = FailureRole::cause) noexcept;

/// What a person is told about an exception: its type and text, without LibTorch's frames.
std::string describe_exception(const std::exception& error);

/// Calls `act`, gives back what it does, and lets pass what it throws, after write_error_file: Python's
/// `record` around main. What an exception handler catches within `act` is no failure.
///
///     int main(int argc, char** argv) { return acc::record([&] { return train(argc, argv); }); }
template <class Act>
auto record(Act act) {
  try {
    return act();
  } catch (const std::exception& error) {
    write_error_file(describe_exception(error));
    throw;
  }
}

/// From now on an exception that nobody catches is written to the error file, too, before the program's own
/// terminate handler is called. Once for a process; an Accelerator does it.
void record_uncaught_exceptions();

}  // namespace acc
