// SPDX-License-Identifier: Apache-2.0
#include "acc/config/terminal_dialog.hpp"

#include <poll.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "acc/base/error.hpp"
#include "acc/base/text.hpp"
#include "acc/config/terminal_keys.hpp"
#include "acc/config/terminal_menu.hpp"

namespace acc {
namespace {

constexpr std::string_view kShowCursor = "\x1b[?25h";

// What a signal handler needs to give the terminal back.
struct RawTerminal {
  int input = -1;
  int output = -1;
  termios saved = {};
};
RawTerminal raw_terminal;

void give_back_terminal() {
  const ssize_t ignored = ::write(raw_terminal.output, kShowCursor.data(), kShowCursor.size());
  static_cast<void>(ignored);
  ::tcsetattr(raw_terminal.input, TCSANOW, &raw_terminal.saved);
}

extern "C" void end_by_signal(int signal) {
  give_back_terminal();
  ::raise(signal);  // SA_RESETHAND and SA_NODEFER: this is the end
}

constexpr std::array kEndingSignals = {SIGHUP, SIGINT, SIGQUIT, SIGTERM};

}  // namespace

struct TerminalDialog::Impl {
  Impl(int input_fd, int output_fd) : input(input_fd), output(output_fd) {
    termios now = {};
    if (::tcgetattr(input, &now) != 0) {
      throw Error({.kind = ErrorKind::system,
                   .what = std::string("the input is not a terminal: ") + std::strerror(errno)});
    }
    raw_terminal = {input, output, now};
    struct sigaction action = {};
    action.sa_handler = end_by_signal;
    action.sa_flags = static_cast<int>(SA_RESETHAND | SA_NODEFER);
    for (std::size_t i = 0; i < kEndingSignals.size(); ++i)
      ::sigaction(kEndingSignals[i], &action, &old_actions[i]);
    now.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO | ISIG | IEXTEN);
    now.c_cc[VMIN] = 1;
    now.c_cc[VTIME] = 0;
    ::tcsetattr(input, TCSADRAIN, &now);
  }

  ~Impl() {
    give_back_terminal();
    for (std::size_t i = 0; i < kEndingSignals.size(); ++i)
      ::sigaction(kEndingSignals[i], &old_actions[i], nullptr);
  }

  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  void write(std::string_view text) const {
    while (!text.empty()) {
      const ssize_t n = ::write(output, text.data(), text.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return;  // a terminal that is gone shows itself when keys are read
      text.remove_prefix(static_cast<std::size_t>(n));
    }
  }

  std::optional<char> next_byte() const {
    char byte = 0;
    ssize_t n = 0;
    do {
      n = ::read(input, &byte, 1);
    } while (n < 0 && errno == EINTR);
    return n == 1 ? std::optional(byte) : std::nullopt;
  }

  // A key that sends several bytes sends them together; 50 ms allow for slow lines.
  bool byte_follows() const {
    pollfd waiting = {.fd = input, .events = POLLIN, .revents = 0};
    constexpr int kMilliseconds = 50;
    return ::poll(&waiting, 1, kMilliseconds) == 1;
  }

  KeyPress next_key() const {
    const auto press = read_key({[this] { return next_byte(); }, [this] { return byte_follows(); }});
    if (!press) throw Error({.what = "the input ended"});
    if (press->key == Key::interrupt) {
      write("^C\n");
      throw Interrupted();
    }
    return *press;
  }

  // A terminal too low for the list would scroll it away from where it is drawn again.
  bool has_room_for(std::size_t lines) const {
    winsize size = {};
    return ::ioctl(output, TIOCGWINSZ, &size) != 0 || size.ws_row == 0 || size.ws_row > lines;
  }

  std::string read_text() const;

  int input;
  int output;
  std::array<struct sigaction, kEndingSignals.size()> old_actions = {};
};

namespace {

// Removes the last character and tells how many there were: 1 or 0.
std::size_t erase_character(std::string& text) {
  if (text.empty()) return 0;
  while (!text.empty() && (static_cast<unsigned char>(text.back()) & 0xc0U) == 0x80U) text.pop_back();
  if (!text.empty()) text.pop_back();
  return 1;
}

std::size_t erase_word(std::string& text) {
  std::size_t erased = 0;
  while (text.ends_with(' ')) erased += erase_character(text);
  while (!text.empty() && !text.ends_with(' ')) erased += erase_character(text);
  return erased;
}

std::string backspaces(std::size_t characters) {
  std::string result;
  for (std::size_t i = 0; i < characters; ++i) result += "\b \b";
  return result;
}

}  // namespace

std::string TerminalDialog::Impl::read_text() const {
  std::string text;
  for (;;) {
    const KeyPress press = next_key();
    std::size_t erased = 0;
    switch (press.key) {
      case Key::enter:
        write("\n");
        return text;
      case Key::end_of_file:
        if (text.empty()) throw Error({.what = "the input ended"});
        break;
      case Key::backspace:
        erased = erase_character(text);
        break;
      case Key::erase_word:
        erased = erase_word(text);
        break;
      case Key::erase_line:
        while (!text.empty()) erased += erase_character(text);
        break;
      case Key::left:
        if (!text.empty()) break;
        [[fallthrough]];
      case Key::escape:
        write("\n");
        return std::string(kGoBack);
      case Key::text:
        text += press.text;
        write(press.text);
        break;
      default:
        break;
    }
    write(backspaces(erased));
  }
}

TerminalDialog::TerminalDialog(int input, int output) : impl_(std::make_unique<Impl>(input, output)) {}
TerminalDialog::~TerminalDialog() = default;

void TerminalDialog::say(std::string_view text) {
  impl_->write(std::string(text) + "\n");
}

std::string TerminalDialog::ask(std::string_view prompt, std::string_view otherwise) {
  impl_->write(prompt);
  if (!otherwise.empty()) impl_->write(" [" + std::string(otherwise) + "]");
  impl_->write(" ");
  return impl_->read_text();
}

std::string TerminalDialog::ask_menu(std::string_view prompt, const std::vector<std::string>& choices,
                                     std::size_t otherwise) {
  if (!impl_->has_room_for(choices.size() + 2))
    return ask(std::string(prompt) + " (" + join(choices, ", ") + ")", choices[otherwise]);
  TerminalMenu menu(choices, otherwise);
  impl_->write(std::string(prompt) + "\n" + menu.draw());
  for (KeyPress press = impl_->next_key(); press.key != Key::enter; press = impl_->next_key()) {
    const bool back = press.key == Key::escape || press.key == Key::left;
    if (back || press.text == kAskHelp) {
      impl_->write(menu.dismiss());
      return std::string(back ? kGoBack : kAskHelp);
    }
    impl_->write(menu.press(press));
  }
  impl_->write(menu.close());
  return choices[menu.chosen()];
}

}  // namespace acc
