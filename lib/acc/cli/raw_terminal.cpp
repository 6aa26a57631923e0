// SPDX-License-Identifier: Apache-2.0
#include "acc/cli/raw_terminal.hpp"

#include <poll.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "acc/base/error.hpp"
#include "acc/cli/dialog.hpp"

namespace acc::launcher {
namespace {

constexpr std::string_view kEnterScreen = "\x1b[?1049h\x1b[?25l";
constexpr std::string_view kLeaveScreen = "\x1b[?1049l\x1b[?25h";

constexpr std::array kEndingSignals = {SIGHUP, SIGINT, SIGQUIT, SIGTERM};
constexpr std::array kWatchedSignals = {SIGTSTP, SIGCONT, SIGWINCH};

// The state that signal handlers need to restore the terminal.
struct SavedTerminal {
  int input = -1;
  int output = -1;
  termios mode = {};
  bool has_screen = false;
};
SavedTerminal saved_terminal;
volatile std::sig_atomic_t stop_requested = 0;
volatile std::sig_atomic_t was_continued = 0;
volatile std::sig_atomic_t was_resized = 0;

void write_sequence(std::string_view sequence) {
  const ssize_t ignored = ::write(saved_terminal.output, sequence.data(), sequence.size());
  static_cast<void>(ignored);
}

void restore_terminal() {
  write_sequence(saved_terminal.has_screen ? kLeaveScreen : kShowCursor);
  ::tcsetattr(saved_terminal.input, TCSANOW, &saved_terminal.mode);
}

void enter_raw_mode() {
  termios raw = saved_terminal.mode;
  raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO | ISIG | IEXTEN);
  raw.c_cc[VMIN] = 1;
  raw.c_cc[VTIME] = 0;
  ::tcsetattr(saved_terminal.input, TCSADRAIN, &raw);
  if (saved_terminal.has_screen) write_sequence(kEnterScreen);
}

extern "C" void end_by_signal(int signal) {
  restore_terminal();
  ::raise(signal);  // with SA_RESETHAND and SA_NODEFER: ends the program
}

extern "C" void note_signal(int signal) {
  if (signal == SIGTSTP) stop_requested = 1;
  if (signal == SIGCONT) was_continued = 1;
  if (signal == SIGWINCH) was_resized = 1;
}

sigset_t watched_set() {
  sigset_t set = {};
  ::sigemptyset(&set);
  for (const int signal : kWatchedSignals) ::sigaddset(&set, signal);
  return set;
}

// Stops the whole process group, as the terminal would.
void stop_process_group() {
  restore_terminal();
  struct sigaction before = {};
  struct sigaction plain = {};
  plain.sa_handler = SIG_DFL;
  ::sigaction(SIGTSTP, &plain, &before);
  // The pending SIGCONT is consumed here.
  const sigset_t watched = watched_set();
  ::kill(0, SIGTSTP);
  ::sigprocmask(SIG_UNBLOCK, &watched, nullptr);
  ::sigprocmask(SIG_BLOCK, &watched, nullptr);
  ::sigaction(SIGTSTP, &before, nullptr);
}

std::optional<char> next_byte(int input) {
  char byte = 0;
  ssize_t n = 0;
  do {
    n = ::read(input, &byte, 1);
  } while (n < 0 && errno == EINTR);
  return n == 1 ? std::optional(byte) : std::nullopt;
}

// The bytes of a key arrive together; 50 ms allow for slow connections.
bool byte_follows(int input) {
  pollfd waiting = {.fd = input, .events = POLLIN, .revents = 0};
  constexpr int kMilliseconds = 50;
  return ::poll(&waiting, 1, kMilliseconds) == 1;
}

winsize size_of(int terminal) {
  winsize size = {};
  if (::ioctl(terminal, TIOCGWINSZ, &size) != 0) size = {};
  return size;
}

}  // namespace

struct RawTerminal::Impl {
  Impl(int input, int output, Area area) {
    termios now = {};
    if (::tcgetattr(input, &now) != 0) {
      throw Error({.kind = ErrorKind::system,
                   .what = std::string("the input is not a terminal: ") + std::strerror(errno)});
    }
    saved_terminal = {input, output, now, area == Area::whole_screen};
    stop_requested = 0;
    was_continued = 0;
    was_resized = 0;
    struct sigaction ending = {};
    ending.sa_handler = end_by_signal;
    ending.sa_flags = static_cast<int>(SA_RESETHAND | SA_NODEFER);
    for (std::size_t i = 0; i < kEndingSignals.size(); ++i) {
      ::sigaction(kEndingSignals[i], nullptr, &endings_before[i]);
      // What the caller ignores, as nohup does, stays ignored.
      if (endings_before[i].sa_handler != SIG_IGN) ::sigaction(kEndingSignals[i], &ending, nullptr);
    }
    // Signals are blocked except while waiting for a key, so that none arrives between a check and the
    // wait.
    const sigset_t watched = watched_set();
    ::sigprocmask(SIG_BLOCK, &watched, &mask_before);
    struct sigaction noting = {};
    noting.sa_handler = note_signal;
    for (std::size_t i = 0; i < kWatchedSignals.size(); ++i)
      ::sigaction(kWatchedSignals[i], &noting, &watched_before[i]);
    enter_raw_mode();
  }

  ~Impl() {
    restore_terminal();
    for (std::size_t i = 0; i < kEndingSignals.size(); ++i)
      ::sigaction(kEndingSignals[i], &endings_before[i], nullptr);
    for (std::size_t i = 0; i < kWatchedSignals.size(); ++i)
      ::sigaction(kWatchedSignals[i], &watched_before[i], nullptr);
    ::sigprocmask(SIG_SETMASK, &mask_before, nullptr);
  }

  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  /// What wait() has waited for.
  struct Event {
    /// An event of the terminal; nullopt: there is a byte, or the descriptor can be read.
    std::optional<Key> key = {};
    bool has_byte = false;
  };

  // Waits for a byte, for an event of the terminal, or until `descriptor`, if it is one, can be read.
  Event wait(int descriptor) const {
    // Handles signals that arrived before, even if keys are waiting.
    const timespec at_once = {};
    ::ppoll(nullptr, 0, &at_once, &mask_before);
    for (;;) {
      if (stop_requested != 0) return {.key = Key::suspend};
      if (was_continued != 0) return {.key = Key::continued};
      if (was_resized != 0) return {.key = Key::resized};
      std::array<pollfd, 2> waiting = {{{.fd = saved_terminal.input, .events = POLLIN, .revents = 0},
                                        {.fd = descriptor, .events = POLLIN, .revents = 0}}};
      const nfds_t count = descriptor < 0 ? 1 : waiting.size();
      if (::ppoll(waiting.data(), count, nullptr, &mask_before) >= 0 || errno != EINTR)
        return {.has_byte = waiting[0].revents != 0 || waiting[1].revents == 0};
    }
  }

  std::array<struct sigaction, kEndingSignals.size()> endings_before = {};
  std::array<struct sigaction, kWatchedSignals.size()> watched_before = {};
  sigset_t mask_before = {};
};

RawTerminal::RawTerminal(int input, int output, Area area)
    : impl_(std::make_unique<Impl>(input, output, area)) {}
RawTerminal::~RawTerminal() = default;

void RawTerminal::write(std::string_view text) const {
  while (!text.empty()) {
    const ssize_t n = ::write(saved_terminal.output, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return;  // reading keys reports a closed terminal
    text.remove_prefix(static_cast<std::size_t>(n));
  }
}

KeyPress RawTerminal::next_key() const {
  constexpr int kNone = -1;
  return next_key_or(kNone).value();
}

std::optional<KeyPress> RawTerminal::next_key_or(int descriptor) const {
  const Impl::Event event = impl_->wait(descriptor);
  std::optional<Key> happened = event.key;
  if (!happened && !event.has_byte) return std::nullopt;
  KeyPress press;
  if (!happened) {
    const auto read = read_key(
        {[] { return next_byte(saved_terminal.input); }, [] { return byte_follows(saved_terminal.input); }});
    if (!read) throw Error({.what = "the input ended"});
    press = *read;
  }
  if (press.key == Key::interrupt) {
    write("^C\n");
    throw Interrupted();
  }
  if (happened == Key::resized) was_resized = 0;
  if (press.key == Key::suspend || happened == Key::suspend) {
    stop_process_group();
    stop_requested = 0;
    happened = Key::continued;
  }
  if (happened == Key::continued) {
    was_continued = 0;
    enter_raw_mode();
  }
  return happened ? KeyPress{*happened, ""} : press;
}

std::size_t RawTerminal::columns() const {
  constexpr std::size_t kUsual = 80;
  const winsize size = size_of(saved_terminal.output);
  return size.ws_col == 0 ? kUsual : size.ws_col;
}

std::size_t RawTerminal::rows() const {
  constexpr std::size_t kUsual = 24;
  const winsize size = size_of(saved_terminal.output);
  return size.ws_row == 0 ? kUsual : size.ws_row;
}

}  // namespace acc::launcher
