// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace acc::detail {

/// The place of this process in the job that it has joined; that of a process alone before.
struct JobPlace {
  int rank = 0;
  int size = 1;
};
JobPlace joined_job();

}  // namespace acc::detail
