// SPDX-License-Identifier: Apache-2.0
#include "acc/cli/terminal_keys.hpp"

#include <string_view>

namespace acc::launcher {
namespace {

constexpr char kEscape = '\x1b';

// The rest of a sequence after `ESC [` or `ESC O`, of xterm, the Linux console and rxvt.
Key key_of_sequence(std::string_view sequence) {
  if (sequence == "A") return Key::up;
  if (sequence == "B") return Key::down;
  if (sequence == "D") return Key::left;
  if (sequence == "H" || sequence == "1~" || sequence == "7~") return Key::home;
  if (sequence == "F" || sequence == "4~" || sequence == "8~") return Key::end;
  if (sequence == "5~") return Key::page_up;
  if (sequence == "6~") return Key::page_down;
  return Key::unknown;
}

KeyPress read_sequence(const ByteSource& bytes) {
  if (!bytes.more()) return {Key::escape, ""};
  const char introducer = bytes.next().value_or('\0');
  if (introducer != '[' && introducer != 'O') return {};
  std::string sequence;
  constexpr std::size_t kLongest = 16;
  while (sequence.size() < kLongest && bytes.more()) {
    const auto byte = bytes.next();
    if (!byte) break;
    sequence += *byte;
    if (*byte >= '@' && *byte <= '~') break;
  }
  return {key_of_sequence(sequence), ""};
}

Key key_of_control(char byte) {
  switch (byte) {
    case '\r':
    case '\n':
      return Key::enter;
    case '\x03':
      return Key::interrupt;
    case '\x1a':
      return Key::suspend;
    case '\x04':
      return Key::end_of_file;
    case '\x08':
    case '\x7f':
      return Key::backspace;
    case '\x15':
      return Key::erase_line;
    case '\x17':
      return Key::erase_word;
    default:
      return Key::unknown;
  }
}

std::size_t following_bytes(char first) {
  const auto byte = static_cast<unsigned char>(first);
  return byte >= 0xf0 ? 3 : byte >= 0xe0 ? 2 : byte >= 0xc0 ? 1 : 0;
}

}  // namespace

std::optional<KeyPress> read_key(const ByteSource& bytes) {
  const auto first = bytes.next();
  if (!first) return std::nullopt;
  if (*first == kEscape) return read_sequence(bytes);
  const bool control = (*first >= 0 && *first < ' ') || *first == '\x7f';
  if (control) return KeyPress{key_of_control(*first), ""};
  KeyPress press{Key::text, std::string(1, *first)};
  for (std::size_t i = following_bytes(*first); i > 0; --i) {
    const auto byte = bytes.next();
    if (!byte) return std::nullopt;
    press.text += *byte;
  }
  return press;
}

}  // namespace acc::launcher
