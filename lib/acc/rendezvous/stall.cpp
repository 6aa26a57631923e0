// SPDX-License-Identifier: Apache-2.0
#include "acc/rendezvous/stall.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "acc/base/text.hpp"

namespace acc::launcher {
namespace {

bool is_beyond(const StepsReached& reached, const StepsReached& first) {
  if (reached.steps == 0) return false;
  return !reached.counts_over_restarts || !first.counts_over_restarts || reached.steps > first.steps;
}

std::string reason_of(const Stall& stall) {
  const bool has_no_step = stall.first.steps == 0 || !stall.first.counts_over_restarts;
  return fmt::format("not restarted: no rank {} in {} (--restarts-without-progress)",
                     has_no_step ? "has ended a step" : fmt::format("got beyond step {}", stall.first.steps),
                     pluralize(static_cast<std::uint64_t>(stall.restarts), "restart"));
}

}  // namespace

StepsReached steps_reached(std::span<const Progress> ranks) {
  // Who says the steps of the training knows better than those of whom only this process's are known.
  const bool any_says =
      std::ranges::any_of(ranks, [](const Progress& rank) { return rank.step_scope == StepScope::training; });
  StepsReached result;
  for (const Progress& rank : ranks) {
    const bool is_another = rank.step_scope == StepScope::another_training;
    const bool is_process = rank.step_scope == StepScope::process;
    // A step that is taken by hand is counted by nobody; several backwards tell that there are some.
    const bool has_trained = is_process && (rank.steps > 0 || rank.backwards > 1);
    if (any_says && is_process) continue;
    // A training that came after another one may not have ended a step yet, but this process has.
    const std::int64_t steps = is_another || has_trained ? std::max<std::int64_t>(rank.steps, 1) : rank.steps;
    result = furthest(
        result, {.is_known = true, .steps = steps, .counts_over_restarts = !is_another && !has_trained});
  }
  return result;
}

StepsReached furthest(const StepsReached& first, const StepsReached& second) {
  return {.is_known = first.is_known || second.is_known,
          .steps = std::max(first.steps, second.steps),
          .counts_over_restarts = first.counts_over_restarts && second.counts_over_restarts};
}

std::string StallCount::on_failure(const StepsReached& reached) {
  if (!reached.is_known) return {};
  if (!stall_.first.is_known || is_beyond(reached, stall_.first)) {
    stall_ = {.first = reached};
    return {};
  }
  ++stall_.restarts;
  return max_ > 0 && stall_.restarts >= max_ ? reason_of(stall_) : std::string();
}

}  // namespace acc::launcher
