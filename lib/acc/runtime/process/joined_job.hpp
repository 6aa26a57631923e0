// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace acc::detail {

/// The rank of this process in the job that it has joined, and the size of the job; before, those of a
/// process alone.
struct JobPosition {
  int rank = 0;
  int size = 1;
};
JobPosition joined_job();

}  // namespace acc::detail
