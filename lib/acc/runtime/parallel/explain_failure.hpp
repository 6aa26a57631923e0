// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "acc/base/error.hpp"

namespace acc::detail {

/// The other processes' state, as a RollCall finds it.
struct PeerReport {
  struct Late {
    int rank = 0;
    /// How many collectives it is behind.
    std::uint64_t calls_behind = 0;
    /// As in `in forward`.
    std::string place = {};
  };
  /// Ranks that do not answer.
  std::vector<int> absent = {};
  std::vector<Late> late = {};
};

/// The collective in which LibTorch threw an exception.
struct CollectiveContext {
  int rank = 0;
  /// The number of processes; 0: unknown.
  int size = 0;
  /// `gather`, `backward`, ...
  std::string_view doing = {};
  std::chrono::milliseconds timeout = {};
  /// The state of the others, if known.
  std::optional<PeerReport> roll = {};
};

/// Explains LibTorch's text for a lost peer or a timeout, with the ranks that are missing where they are
/// known; nothing for any other text.
std::optional<Error> explain_collective_failure(std::string_view text, const CollectiveContext& context);

/// Explains LibTorch's text for a job that could not be joined. `store` is host:port.
Error explain_join_failure(std::string_view text, const CollectiveContext& context, std::string_view store);

/// The first line of LibTorch's text, without the source position in front of it.
std::string first_line(std::string_view text);

/// Explains LibTorch's text about parameters that got no gradient in the last step, with their names and
/// acc's option; nothing for any other text. LibTorch's text has their indices among the parameters of its
/// Reducer: `trained` are the names of those.
std::optional<Error> explain_unused_parameters(std::string_view text, const std::vector<std::string>& trained,
                                               std::string where);

}  // namespace acc::detail
