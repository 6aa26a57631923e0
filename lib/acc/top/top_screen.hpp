// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

#include "acc/top/top_state.hpp"

namespace acc::launcher {

/// How `acc top` draws.
struct TopStyle {
  std::size_t columns = 80;
  std::size_t rows = 24;
  /// Without, bold and inverted text alone.
  bool color = true;
  /// The name of this machine.
  std::string host = {};
};

/// How many lines the table has on a screen of so many rows, above the past of a rank if that is shown.
std::size_t table_lines(std::size_t rows, bool shows_past);

/// The whole screen, each line with its styles as escape sequences; it overwrites the one before without
/// clearing it. Text of other programs is printable().
std::string draw(const TopState& state, const TopStyle& style);

/// The same as plain text, lines without trailing blanks.
std::string draw_plain(const TopState& state, const TopStyle& style);

}  // namespace acc::launcher
