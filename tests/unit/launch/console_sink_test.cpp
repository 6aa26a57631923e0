// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "acc/launch/console.hpp"
#include "acc/launch/relay.hpp"
#include "support/catch.hpp"
#include "support/read_all.hpp"

namespace console_sink_test {

using namespace acc;
using namespace acc::launcher;
using acc::test::read_all;

TEST_CASE("output_sink: a slow reader pauses the sources and resumes them", "[launch]") {
  boost::asio::io_context loop;
  const Channel pipe = make_pipe();
  int room = 0;
  OutputSink sink(loop, pipe.workers.get(), {.on_room = [&] { ++room; }});
  const int source = sink.add_source();
  CHECK(sink.wants(source));
  const std::string text = std::string(3U << 20U, 'x') + "\n";
  sink.feed(source, text, true);
  CHECK_FALSE(sink.wants(source));
  std::string seen;
  while (seen.size() < text.size()) {
    seen += read_all(pipe.ours.get());
    if (seen.size() < text.size()) loop.run_one();
  }
  CHECK(seen == text);
  CHECK(room > 0);
  CHECK(sink.wants(source));
}

TEST_CASE("output_sink: a source that waits for the end of a line is written after the timeout", "[launch]") {
  boost::asio::io_context loop;
  const Channel pipe = make_pipe();
  OutputSink sink(loop, pipe.workers.get(), {});
  const int a = sink.add_source();
  const int b = sink.add_source();
  sink.feed(a, "prompt ", true);
  sink.feed(b, "line\n", true);
  CHECK(read_all(pipe.ours.get()) == "prompt ");
  loop.run();  // the timer is all there is to run
  CHECK(read_all(pipe.ours.get()) == "line\n");
}

TEST_CASE("output_sink: a source with a full buffer resumes when the line has ended", "[launch]") {
  boost::asio::io_context loop;
  const Channel pipe = make_pipe();
  int room = 0;
  OutputSink sink(loop, pipe.workers.get(), {.on_room = [&] { ++room; }});
  const int a = sink.add_source();
  const int b = sink.add_source();
  sink.feed(a, "begin", true);
  sink.feed(b, std::string(2U << 20U, 'x') + "\n", true);
  CHECK_FALSE(sink.wants(b));
  CHECK(room == 0);
  std::string seen = read_all(pipe.ours.get());
  sink.feed(a, "\n", true);
  while (room == 0) {
    seen += read_all(pipe.ours.get());
    loop.run_one();
  }
  CHECK(sink.wants(b));
}

TEST_CASE("output_sink: finish() writes buffered text", "[launch]") {
  boost::asio::io_context loop;
  const Channel pipe = make_pipe();
  OutputSink sink(loop, pipe.workers.get(), {});
  const int a = sink.add_source();
  const int b = sink.add_source();
  sink.feed(a, "a", true);
  sink.feed(b, "b", true);
  sink.close_source(b);
  CHECK(sink.finish());
  CHECK(read_all(pipe.ours.get()) == "ab");
}

TEST_CASE("output_sink: a full disk blocks no source, is reported once, and the loss is counted",
          "[launch]") {
  boost::asio::io_context loop;
  const Descriptor full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
  std::vector<int> errors;
  OutputSink sink(loop, full.get(), {.on_trouble = [&](Console::State state, int error) {
                    CHECK(state == Console::State::full);
                    errors.push_back(error);
                  }});
  const int source = sink.add_source();
  const std::string text = std::string(3U << 20U, 'x') + "\n";
  sink.feed(source, text, true);
  CHECK(sink.wants(source));
  sink.feed(source, "more\n", true);
  CHECK(sink.finish());
  CHECK(errors == std::vector<int>{ENOSPC});
  CHECK(sink.give_up() == text.size() + 5);
}

TEST_CASE("output_sink: a lost reader is reported once", "[launch]") {
  ::signal(SIGPIPE, SIG_IGN);
  boost::asio::io_context loop;
  Channel pipe = make_pipe();
  int gone = 0;
  OutputSink sink(loop, pipe.workers.get(), {.on_trouble = [&](Console::State state, int) {
                    gone += state == Console::State::no_reader ? 1 : 0;
                  }});
  const int source = sink.add_source();
  pipe.ours.reset();
  sink.feed(source, "one\n", true);
  sink.feed(source, "two\n", true);
  CHECK(gone == 1);
  CHECK(sink.finish());
  CHECK(sink.give_up() == 0);
  ::signal(SIGPIPE, SIG_DFL);
}

}  // namespace console_sink_test
