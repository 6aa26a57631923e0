// SPDX-License-Identifier: Apache-2.0
#include "acc/launch/relay.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>

#include "support/catch.hpp"
#include "support/read_all.hpp"
#include "support/temporary_folder.hpp"

namespace relay_test {

using namespace acc;
using namespace acc::launcher;
using acc::test::read_all;

namespace {

struct Carried {
  boost::asio::io_context loop = {};
  Channel console = make_pipe();
  Channel worker = make_pipe();
  OutputSink sink{loop, console.workers.get(), {}};
  std::array<char, 4096> buffer = {};
  std::shared_ptr<Relay> relay = {};

  void start(RelayTarget target) {
    relay = std::make_shared<Relay>(loop, std::move(worker.ours), false, std::move(target), buffer);
    relay->start();
  }
  void write(std::string_view text) const {
    REQUIRE(::write(worker.workers.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()));
  }
  std::string shown() const { return read_all(console.ours.get()); }
};

}  // namespace

TEST_CASE("relay: passes bytes on unchanged, until the end", "[launch]") {
  Carried carried;
  Tail tail;
  carried.start({.sink = &carried.sink, .tail = &tail});
  carried.write("one\ntwo");
  carried.loop.run_one();
  CHECK(carried.shown() == "one\ntwo");
  carried.write("\xff\r");
  carried.worker.workers.reset();
  carried.loop.run();
  CHECK(carried.shown() == "\xff\r");
  CHECK(tail.lines() == "one\ntwo\xff\r");
}

TEST_CASE("relay: tee writes an unchanged file, and lines with a prefix to the console", "[launch]") {
  Carried carried;
  const test::TemporaryFolder folder;
  RelayTarget target = {.sink = &carried.sink};
  target.prefixer.emplace("[0]:");
  target.log =
      LogFile(Descriptor(::open((folder.path() / "log").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600)));
  carried.start(std::move(target));
  carried.write("one\ntwo");
  carried.worker.workers.reset();
  carried.loop.run();
  CHECK(carried.shown() == "[0]:one\n[0]:two\n");
  CHECK(folder.read("log") == "one\ntwo");
}

TEST_CASE("relay: an unfinished line is shown with its prefix when nothing follows", "[launch]") {
  Carried carried;
  RelayTarget target = {.sink = &carried.sink};
  target.prefixer.emplace("[0]:");
  carried.start(std::move(target));
  carried.write("one\nCompiling...");
  carried.loop.run_one();
  CHECK(carried.shown() == "[0]:one\n");
  carried.loop.run_one();  // the worker writes no more
  CHECK(carried.shown() == "[0]:Compiling...\n");
  carried.write("done\n");
  carried.loop.run_one();
  CHECK(carried.shown() == "[0]:done\n");
}

TEST_CASE("relay: a log that cannot be written is retried, and the console continues", "[launch]") {
  Carried carried;
  std::vector<std::string> reasons;
  std::uint64_t lost = 0;
  RelayTarget target = {.sink = &carried.sink};
  target.log = LogFile(Descriptor(::open("/dev/full", O_WRONLY | O_CLOEXEC)));
  target.on_full_log = [&](const std::string& why) { reasons.push_back(why); };
  target.on_lost = [&](std::uint64_t bytes) { lost += bytes; };
  carried.start(std::move(target));
  carried.write("one\n");
  carried.loop.run_one();
  carried.write("two\n");
  carried.worker.workers.reset();
  carried.loop.run();
  CHECK(carried.shown() == "one\ntwo\n");
  CHECK(reasons == std::vector<std::string>(2, "No space left on device"));
  CHECK(lost == 8);
}

TEST_CASE("relay: finish() reads what is available, even if the other end stays open", "[launch]") {
  Carried carried;
  carried.start({.sink = &carried.sink});
  carried.write(std::string(30'000, 'x'));
  carried.relay->finish();
  CHECK(carried.shown().size() == 30'000);
}

}  // namespace relay_test
