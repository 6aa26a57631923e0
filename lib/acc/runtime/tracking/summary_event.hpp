// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "acc/runtime/tracking/tracker.hpp"

namespace acc {

/// When an event was, in seconds since 1970, and in which step.
struct EventTime {
  double seconds = 0;
  std::optional<std::int64_t> step = {};
};

// The bytes of tensorboard's Event messages (tensorboard/compat/proto/event.proto, summary.proto,
// tensor.proto and plugins/hparams/*.proto), with what torch.utils.tensorboard puts into them.

/// The first of a file.
std::string version_event(double seconds);

/// Of text as SummaryWriter.add_text writes it, of a number as add_scalar.
std::string value_event(const EventTime& time, std::string_view tag, const TrackedScalar& value);

/// The three of SummaryWriter.add_hparams: which hyper-parameters there are, their values, and that the
/// session is over. Truth values are numbers there.
std::vector<std::string> hyper_parameter_events(double seconds, const TrackedConfig& config);

}  // namespace acc
