// SPDX-License-Identifier: Apache-2.0
// What the client of --hosts and the agent of a host read from ssh: bytes in pieces, with or without what a
// login shell prints before, are frames or are refused. What is in a frame is a message of its kind or is
// refused, and is the same when it is sent on.
#include <nlohmann/json.hpp>
#include <vector>

#include "acc/control/node_view.hpp"
#include "acc/remote/frames.hpp"
#include "acc/remote/job_spec.hpp"
#include "fuzz/promise.hpp"

namespace {

using acc::launcher::Frame;
using acc::launcher::FrameKind;

std::optional<std::vector<Frame>> frames_in(std::string_view bytes, bool greeted, std::size_t piece_size) {
  return fuzz::value_or_error([&] {
    acc::launcher::FrameReader reader(greeted);
    std::vector<Frame> frames;
    while (!bytes.empty()) {
      const std::string_view piece = bytes.substr(0, piece_size);
      bytes.remove_prefix(piece.size());
      for (Frame& frame : reader.feed(piece)) frames.push_back(std::move(frame));
    }
    return frames;
  });
}

template <class Parse>
void check(const Frame& frame, Parse parse) {
  const auto message = fuzz::value_or_error([&] { return parse(frame.payload); });
  if (!message) return;
  const std::string text = to_json(*message);
  fuzz::require(to_json(parse(text)) == text, "a message is the same where it arrives", text);
}

void check_payload(const Frame& frame) {
  switch (frame.kind) {
    case FrameKind::spec:
      acc::launcher::version_of_spec(frame.payload);
      return check(frame, acc::launcher::parse_job_spec);
    case FrameKind::ready:
      return check(frame, acc::launcher::parse_host_ready);
    case FrameKind::refused:
      return check(frame, acc::launcher::parse_refusal);
    case FrameKind::start:
      return check(frame, acc::launcher::parse_start_order);
    case FrameKind::exit:
    case FrameKind::signal:
      fuzz::value_or_error([&] { return acc::launcher::parse_exit_code(frame.payload); });
      return;
    default:
      return;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view bytes = fuzz::text_of(data, size);
  fuzz::Choices choices(bytes);
  const bool greeted = choices.below(2) == 1;
  const std::size_t piece_size = 1 + choices.below(64);
  const auto frames = frames_in(bytes, greeted, SIZE_MAX);
  fuzz::require(frames_in(bytes, greeted, piece_size) == frames, "frames in pieces are the same");
  if (!frames) return 0;
  std::string sent;
  for (const Frame& frame : *frames) {
    sent += encode(frame.kind, frame.payload);
    check_payload(frame);
  }
  fuzz::require(bytes.find(sent) != std::string_view::npos, "frames are what was sent");
  return 0;
}
