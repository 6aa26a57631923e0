// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>

#include "acc/config/terminal_keys.hpp"

namespace acc::launcher {

/// A terminal that gives every key at once and echoes none, as long as the object lives.
///
/// It is given back as it was, with its cursor, at the end, on an exception, before a signal ends or stops
/// the program. One object at a time.
class RawTerminal {
 public:
  /// Reads keys from `input` and writes to `output`; both stay open and belong to the caller.
  /// Throws Error{system} when `input` is not a terminal.
  RawTerminal(int input, int output);
  ~RawTerminal();
  RawTerminal(const RawTerminal&) = delete;
  RawTerminal& operator=(const RawTerminal&) = delete;

  void write(std::string_view text) const;

  /// The next key; Key::resized and Key::continued tell what happened meanwhile. Ctrl-Z stops the program
  /// here. Throws Interrupted after Ctrl-C, Error{usage} when the input ends.
  KeyPress next_key() const;

  /// As they are now; 80 and 24 where the terminal does not tell.
  std::size_t columns() const;
  std::size_t rows() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace acc::launcher
