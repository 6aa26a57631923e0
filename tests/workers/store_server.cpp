// SPDX-License-Identifier: Apache-2.0
// A store for PyTorch clients: prints its port, resets at each line on stdin, and ends at EOF.
#include <unistd.h>

#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <cstdio>
#include <exception>
#include <functional>

#include "acc/store/server.hpp"

int main() try {
  boost::asio::io_context loop{1};
  acc::launcher::StoreServer server(loop, {});
  std::printf("%d\n", server.port());
  std::fflush(stdout);

  boost::asio::posix::stream_descriptor input(loop, ::dup(STDIN_FILENO));
  std::array<char, 16> bytes = {};
  const std::function<void()> read = [&] {
    input.async_read_some(boost::asio::buffer(bytes), [&](const auto& error, std::size_t) {
      if (error) return loop.stop();
      server.reset();
      std::puts("reset");
      std::fflush(stdout);
      read();
    });
  };
  read();
  loop.run();
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
