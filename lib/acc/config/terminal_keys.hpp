// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>

namespace acc::launcher {

/// Keys, and what happens to a terminal between them: it got another size, or the program goes on after a
/// stop.
enum class Key {
  text,
  up,
  down,
  home,
  end,
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

/// One press of a key; `text` is the character (UTF-8) of a Key::text.
struct KeyPress {
  Key key = Key::unknown;
  std::string text = {};

  bool operator==(const KeyPress&) const = default;
};

/// Where the bytes of a terminal come from.
struct ByteSource {
  /// The next byte; nothing when the terminal is gone.
  std::function<std::optional<char>()> next;
  /// Whether a byte follows at once: what tells the key Esc from the beginning of another key.
  std::function<bool()> more;
};

/// Reads one key. Nothing when the terminal is gone.
std::optional<KeyPress> read_key(const ByteSource& bytes);

}  // namespace acc::launcher
