// SPDX-License-Identifier: Apache-2.0
#include "acc/launch/root_cause.hpp"

#include <chrono>

namespace acc {
namespace {

// torch writes whole seconds, so nothing finer can be compared.
std::chrono::sys_seconds second_of_failure(const WorkerFailure& failure) {
  const bool told = failure.error_file && failure.error_file->when;
  return std::chrono::floor<std::chrono::seconds>(told ? *failure.error_file->when : failure.when);
}

}  // namespace

std::size_t find_root_cause(const std::vector<WorkerFailure>& seen) {
  std::size_t cause = 0;
  for (std::size_t i = 1; i < seen.size(); ++i) {
    if (!seen[i].error_file || !seen[i].error_file->when) continue;
    if (second_of_failure(seen[i]) < second_of_failure(seen[cause])) cause = i;
  }
  return cause;
}

}  // namespace acc
