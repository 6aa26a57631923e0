// SPDX-License-Identifier: Apache-2.0
// Many idle clients. ACC_TEST_CLIENTS sets their number (default 500).
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include "acc/store/server.hpp"
#include "support/catch.hpp"
#include "support/store_client.hpp"
#include "support/store_thread.hpp"

namespace server_idle_clients_test {

namespace {

using acc::test::StoreClient;
using acc::test::StoreThread;

std::size_t clients() {
  const char* asked = std::getenv("ACC_TEST_CLIENTS");
  return asked == nullptr ? 500 : std::stoul(asked);
}

void open_more_files() {
  rlimit files = {};
  ::getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &files);
}

long resident_kib() {
  std::ifstream in("/proc/self/statm");
  long total = 0;
  long resident = 0;
  in >> total >> resident;
  return resident * ::sysconf(_SC_PAGESIZE) / 1024;
}

// Reads a port, writes a byte when all clients are connected, and keeps them until the other end closes.
int hold_clients(std::size_t count, int in, int out) try {
  std::uint16_t port = 0;
  if (::read(in, &port, sizeof port) != sizeof port) return 2;
  std::vector<StoreClient> idle;
  for (std::size_t i = 0; i < count; ++i) idle.push_back(StoreClient::greeted(port));
  char byte = 1;
  if (!idle.front().alive() || !idle.back().alive() || ::write(out, &byte, 1) != 1) return 3;
  return ::read(in, &byte, 1) == 0 ? 0 : 4;
} catch (const std::exception& error) {
  std::cerr << error.what() << "\n";
  return 5;
}

}  // namespace

TEST_CASE("idle clients: need little memory, and delay no other", "[store]") {
  const std::size_t count = clients();
  open_more_files();
  // Each side of a connection needs a descriptor, so the clients are in a separate process, forked before
  // there are threads.
  int to_crowd[2] = {-1, -1};
  int from_crowd[2] = {-1, -1};
  REQUIRE(::pipe(to_crowd) == 0);
  REQUIRE(::pipe(from_crowd) == 0);
  const pid_t crowd = ::fork();
  if (crowd == 0) {
    ::close(to_crowd[1]);
    ::_exit(hold_clients(count, to_crowd[0], from_crowd[1]));
  }
  ::close(from_crowd[1]);

  const long before = resident_kib();
  StoreThread store;
  const std::uint16_t port = store.port();
  REQUIRE(::write(to_crowd[1], &port, sizeof port) == sizeof port);
  char there = 0;
  CHECK(::read(from_crowd[0], &there, 1) == 1);
  CHECK(store.connections() == count);
  auto busy = StoreClient::greeted(port);
  busy.set("/k", "v");
  CHECK(busy.get("/k") == "v");
  if (std::getenv("ACC_TEST_CLIENTS") != nullptr) {
    std::cout << count << " idle clients: " << resident_kib() - before << " KiB\n";
  }
  ::close(to_crowd[1]);
  int status = 0;
  ::waitpid(crowd, &status, 0);
  CHECK(status == 0);
  ::close(to_crowd[0]);
  ::close(from_crowd[0]);
}

}  // namespace server_idle_clients_test
