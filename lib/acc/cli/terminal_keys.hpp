// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>

namespace acc::launcher {

/// Keys, and events of a terminal: its size changed (`resized`), the program continues after a stop
/// (`continued`).
enum class Key {
  text,
  up,
  down,
  home,
  end,
  page_up,
  page_down,
  left,
  escape,
  enter,
  backspace,
  erase_word,
  erase_line,
  interrupt,
  suspend,
  end_of_file,
  resized,
  continued,
  unknown,
};

/// A key press; `text` is the UTF-8 character of a Key::text.
struct KeyPress {
  Key key = Key::unknown;
  std::string text = {};

  bool operator==(const KeyPress&) const = default;
};

/// The source of the bytes of a terminal.
struct ByteSource {
  /// The next byte; nullopt if the terminal is closed.
  std::function<std::optional<char>()> next;
  /// Whether another byte is available at once, which distinguishes the key Esc from an escape sequence.
  std::function<bool()> more;
};

/// Reads one key; nullopt if the terminal is closed.
std::optional<KeyPress> read_key(const ByteSource& bytes);

}  // namespace acc::launcher
