// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "acc/base/error.hpp"

namespace acc::detail {

/// The state of the other processes, as a PeerCheck finds it.
struct PeerReport {
  struct Late {
    int rank = 0;
    /// How many collectives it is behind this process.
    std::uint64_t calls_behind = 0;
    /// Where it is, such as `in forward`.
    std::string phase = {};
  };
  /// The ranks that do not answer.
  std::vector<int> absent = {};
  std::vector<Late> late = {};
  /// Where each rank is that answered.
  std::map<int, std::string> phases = {};
};

/// The collective operation in which LibTorch threw an exception.
struct CollectiveContext {
  int rank = 0;
  /// The number of processes; 0: unknown.
  int size = 0;
  /// The name of the operation: `gather`, `backward`, ...
  std::string_view doing = {};
  std::chrono::milliseconds timeout = {};
  /// The state of the other processes, if known.
  std::optional<PeerReport> peers = {};
};

/// Translates LibTorch's message about a lost peer or a timeout into an Error that names the missing ranks,
/// if they are known, and that about different calls into one that tells where the others are. Returns
/// nothing for other messages.
std::optional<Error> explain_collective_failure(std::string_view text, const CollectiveContext& context);

/// Translates LibTorch's message about a job that could not be joined. `store` is host:port.
Error explain_join_failure(std::string_view text, const CollectiveContext& context, std::string_view store);

/// The first line of LibTorch's message, without the source position in front of it.
std::string first_line(std::string_view text);

/// Translates LibTorch's message about parameters that got no gradient in the last step into an Error with
/// their names and acc's option. Returns nothing for other messages. LibTorch's message has indices into the
/// parameters of its Reducer, whose names are `trained`.
std::optional<Error> explain_unused_parameters(std::string_view text, const std::vector<std::string>& trained,
                                               std::string where);

}  // namespace acc::detail
