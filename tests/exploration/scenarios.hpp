// SPDX-License-Identifier: Apache-2.0
// What is explored of the exchange in shared memory, and how far.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "exploration/search.hpp"

namespace exploration {

struct Exploration {
  std::string name = {};
  Execute execute = {};
  int bound = 1;  ///< Deviations that a complete search affords.
};

/// Of two and three ranks with two slots each: all operations, ways of waiting, losses, and calls that
/// differ.
const std::vector<Exploration>& explorations();

/// The search with `bound` deviations and then `walks`.
Report explore(const Exploration& exploration, int bound, std::uint64_t walks, std::uint64_t seed = 1);

/// The execution of "SCENARIO: SCHEDULE", as text_of() writes it. Throws std::invalid_argument if there is
/// none.
Report again(const std::string& text);

/// What to tell of a failure: what is wrong, how to repeat it, and who did what in which order.
std::string text_of(const std::string& name, const Report& report);

}  // namespace exploration
