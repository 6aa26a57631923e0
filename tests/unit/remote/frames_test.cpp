// SPDX-License-Identifier: Apache-2.0
#include "acc/remote/frames.hpp"

#include "support/catch.hpp"
#include "support/errors.hpp"

namespace frames_test {

using acc::launcher::encode;
using acc::launcher::Frame;
using acc::launcher::FrameKind;
using acc::launcher::FrameReader;
using acc::launcher::greeting;
using acc::test::error_of;
using Frames = std::vector<Frame>;

TEST_CASE("frames: come back in any cut of the stream", "[remote]") {
  const std::string long_text(70'000, '\xff');
  const Frames sent = {
      {FrameKind::out, std::string("a\0b\n", 4)}, {FrameKind::heartbeat, ""}, {FrameKind::err, long_text}};
  std::string stream = "Welcome to node1\nno acc yet" + greeting();
  for (const Frame& frame : sent) stream += encode(frame.kind, frame.payload);
  for (const std::size_t step : {std::size_t{1}, std::size_t{7}, std::size_t{4096}, stream.size()}) {
    CAPTURE(step);
    FrameReader reader(true);
    Frames got;
    for (std::size_t at = 0; at < stream.size(); at += step) {
      for (Frame& frame : reader.feed(std::string_view(stream).substr(at, step)))
        got.push_back(std::move(frame));
    }
    CHECK(got == sent);
    CHECK(reader.preamble() == "Welcome to node1\nno acc yet");
  }
}

TEST_CASE("frames: a stream without greeting begins with a frame", "[remote]") {
  FrameReader reader(false);
  CHECK(reader.feed(encode(FrameKind::signal, "15")) == Frames{{FrameKind::signal, "15"}});
}

TEST_CASE("frames: what answers without being acc is refused, not collected for ever", "[remote]") {
  FrameReader reader(true);
  CHECK(reader.feed("login: ").empty());
  CHECK(reader.preamble() == "login: ");
  CHECK(error_of([&] { reader.feed(std::string(70'000, 'x')); }) == "what answered is not acc");
}

TEST_CASE("frames: bytes that are no frames are refused", "[remote]") {
  const std::string what = "the connection carries something else than acc's frames";
  CHECK(error_of([] { FrameReader(false).feed("hello"); }) == what);
  // A size beyond all sense.
  CHECK(error_of([] { FrameReader(false).feed("o\xff\xff\xff\xff"); }) == what);
}

}  // namespace frames_test
