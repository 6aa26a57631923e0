// SPDX-License-Identifier: Apache-2.0
#include "acc/launch/stream_plan.hpp"

#include <algorithm>

namespace acc::launcher {

namespace {

bool admits(const std::vector<int>& filter, int number) {
  return filter.empty() || std::ranges::find(filter, number) != filter.end();
}

}  // namespace

StreamPlan plan_stream(const OutputPlan& output, WorkerNumbers worker, Streams stream, bool has_folder) {
  // Without logs torchrun switches its filter off as well.
  const bool listed = admits(output.ranks_filter, worker.rank) &&
                      (output.no_logs || admits(output.local_ranks_filter, worker.local_rank));
  const bool files = has_folder && !output.no_logs;
  const bool tee = files && has(output.tee.of(worker.local_rank), stream);
  const bool redirected = files && has(output.redirects.of(worker.local_rank), stream);
  const bool console = listed && (tee || !redirected);
  return {.file = tee || redirected,
          .console = console,
          .prefixed = listed && tee,
          .stamped = console && output.log_timestamps};
}

}  // namespace acc::launcher
