// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <string>

#include "acc/launch/relay.hpp"
#include "support/catch.hpp"

namespace relay_channel_test {

using namespace acc;
using namespace acc::launcher;

TEST_CASE("channel: our end of a pipe is non-blocking, the worker's is blocking", "[launch]") {
  const Channel pipe = make_pipe();
  CHECK((::fcntl(pipe.ours.get(), F_GETFL) & O_NONBLOCK) != 0);
  CHECK((::fcntl(pipe.workers.get(), F_GETFL) & O_NONBLOCK) == 0);
  CHECK((::fcntl(pipe.workers.get(), F_GETFD) & FD_CLOEXEC) != 0);
}

TEST_CASE("channel: a pseudo-terminal is a terminal, and changes no byte", "[launch]") {
  const auto terminal = make_pseudo_terminal(0);
  REQUIRE(terminal);
  CHECK(::isatty(terminal->workers.get()) == 1);
  const std::string text = "a\nb\r\n\tc\x03\x04";
  REQUIRE(::write(terminal->workers.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()));
  char buffer[64];
  const ssize_t n = ::read(terminal->ours.get(), buffer, sizeof buffer);
  REQUIRE(n > 0);
  CHECK(std::string(buffer, static_cast<std::size_t>(n)) == text);
}

TEST_CASE("channel: a pseudo-terminal follows the size of another", "[launch]") {
  const auto first = make_pseudo_terminal(0);
  REQUIRE(first);
  winsize size = {.ws_row = 33, .ws_col = 77, .ws_xpixel = 0, .ws_ypixel = 0};
  REQUIRE(::ioctl(first->workers.get(), TIOCSWINSZ, &size) == 0);
  const auto second = make_pseudo_terminal(first->workers.get());
  REQUIRE(second);
  winsize seen = {};
  REQUIRE(::ioctl(second->workers.get(), TIOCGWINSZ, &seen) == 0);
  CHECK(seen.ws_row == 33);
  CHECK(seen.ws_col == 77);
  size.ws_col = 99;
  REQUIRE(::ioctl(first->workers.get(), TIOCSWINSZ, &size) == 0);
  copy_window_size(first->workers.get(), second->ours.get());
  REQUIRE(::ioctl(second->workers.get(), TIOCGWINSZ, &seen) == 0);
  CHECK(seen.ws_col == 99);
}

}  // namespace relay_channel_test
