// SPDX-License-Identifier: Apache-2.0
#include "acc/launch/stream_plan.hpp"

#include <algorithm>

namespace acc {

StreamPlan plan_stream(const OutputPlan& output, int local_rank, Streams stream, bool has_folder) {
  // Without logs torchrun switches the filter off as well.
  if (output.no_logs) return {.console = true};
  const std::vector<int>& filter = output.local_ranks_filter;
  const bool listed = filter.empty() || std::ranges::find(filter, local_rank) != filter.end();
  const bool tee = has_folder && has(output.tee.of(local_rank), stream);
  const bool redirected = has_folder && has(output.redirects.of(local_rank), stream);
  return {.file = tee || redirected, .console = listed && (tee || !redirected), .prefixed = listed && tee};
}

}  // namespace acc
