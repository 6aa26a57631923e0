// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string_view>

#include "acc/cli/terminal_keys.hpp"

namespace acc::launcher {

/// Makes the cursor visible again.
inline constexpr std::string_view kShowCursor = "\x1b[?25h";

/// Puts a terminal into raw mode for the lifetime of the object.
///
/// The terminal is restored, with its cursor, by the destructor and before a signal ends or stops the
/// program. There can be one object at a time.
class RawTerminal {
 public:
  /// What of the terminal is written to.
  enum class Area {
    lines,        ///< the lines from the cursor on, which stay
    whole_screen  ///< the alternate screen, without a cursor; what was there before comes back at the end
  };

  /// Reads keys from `input` and writes to `output`; the caller owns both descriptors. Throws Error{system}
  /// if `input` is not a terminal.
  RawTerminal(int input, int output, Area area = Area::lines);
  ~RawTerminal();
  RawTerminal(const RawTerminal&) = delete;
  RawTerminal& operator=(const RawTerminal&) = delete;

  void write(std::string_view text) const;

  /// Waits for a key, or for Key::resized or Key::continued. Ctrl-Z stops the program. Throws Interrupted
  /// on Ctrl-C, Error{usage} at the end of the input.
  KeyPress next_key() const;

  /// The same; nullopt when `descriptor` can be read before there is a key.
  std::optional<KeyPress> next_key_or(int descriptor) const;

  /// The current size; 80 and 24 if the terminal does not report it.
  std::size_t columns() const;
  std::size_t rows() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace acc::launcher
