// SPDX-License-Identifier: Apache-2.0
#include "acc/launch/output_sink.hpp"

#include <unistd.h>

#include "acc/launch/channel.hpp"
#include "support/catch.hpp"
#include "support/read_all.hpp"

using namespace acc;
using acc::test::read_all;

TEST_CASE("output_sink: a slow reader stops its sources and lets them go on", "[launch]") {
  boost::asio::io_context loop;
  const Channel pipe = make_pipe();
  int room = 0;
  OutputSink sink(loop, pipe.workers.get(), [&] { ++room; });
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

TEST_CASE("output_sink: who waits for the end of a line is heard after the silence", "[launch]") {
  boost::asio::io_context loop;
  const Channel pipe = make_pipe();
  OutputSink sink(loop, pipe.workers.get(), [] {});
  const int a = sink.add_source();
  const int b = sink.add_source();
  sink.feed(a, "prompt ", true);
  sink.feed(b, "line\n", true);
  CHECK(read_all(pipe.ours.get()) == "prompt ");
  loop.run();  // the timer is all there is to run
  CHECK(read_all(pipe.ours.get()) == "line\n");
}

TEST_CASE("output_sink: who had too much waiting goes on as soon as the line has ended", "[launch]") {
  boost::asio::io_context loop;
  const Channel pipe = make_pipe();
  int room = 0;
  OutputSink sink(loop, pipe.workers.get(), [&] { ++room; });
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

TEST_CASE("output_sink: finish writes what waits", "[launch]") {
  boost::asio::io_context loop;
  const Channel pipe = make_pipe();
  OutputSink sink(loop, pipe.workers.get(), [] {});
  const int a = sink.add_source();
  const int b = sink.add_source();
  sink.feed(a, "a", true);
  sink.feed(b, "b", true);
  sink.close_source(b);
  CHECK(sink.finish());
  CHECK(read_all(pipe.ours.get()) == "ab");
}
