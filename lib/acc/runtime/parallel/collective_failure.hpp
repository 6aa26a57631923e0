// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "acc/base/error.hpp"

namespace acc {

/// What a process hears when it asks the others where they are.
struct Roll {
  struct Late {
    int rank = 0;
    /// How many collectives fewer it has begun.
    std::uint64_t calls_behind = 0;
    /// As in `in forward`.
    std::string place = {};
  };
  /// Who does not answer.
  std::vector<int> absent = {};
  std::vector<Late> late = {};
};

/// What a process was doing with the others when LibTorch threw.
struct CollectiveContext {
  int rank = 0;
  /// How many processes there are; 0: not known.
  int size = 0;
  /// `gather`, `backward`, ...
  std::string_view doing = {};
  std::chrono::milliseconds timeout = {};
  /// Where the others are, if that is known.
  std::optional<Roll> roll = {};
};

/// LibTorch's text for a lost peer or a time-out said for a person, with the ranks that are missing where
/// they are known; nothing for any other text.
std::optional<Error> explain_collective_failure(std::string_view text, const CollectiveContext& context);

/// LibTorch's text for a job that could not be joined said for a person. `store` is host:port.
Error explain_join_failure(std::string_view text, const CollectiveContext& context, std::string_view store);

/// The first line of what LibTorch says, without the source position in front of it.
std::string first_line(std::string_view text);

}  // namespace acc
