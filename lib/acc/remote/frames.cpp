// SPDX-License-Identifier: Apache-2.0
#include "acc/remote/frames.hpp"

#include <cstdint>

#include "acc/base/error.hpp"

namespace acc::launcher {
namespace {

constexpr std::size_t kHeadSize = 5;
constexpr std::size_t kMaxPayload = std::size_t{64} << 20U;
constexpr std::size_t kMaxPreamble = std::size_t{64} << 10U;
constexpr std::string_view kGreeting = "\nacc agent speaks\n";

[[noreturn]] void refuse_frame(const char* what) {
  throw Error({.kind = ErrorKind::system, .what = what});
}

bool is_kind(char c) {
  return std::string_view("SGKPQREoelNXH").find(c) != std::string_view::npos;
}

std::size_t size_at(std::string_view head) {
  std::uint32_t size = 0;
  for (std::size_t i = 0; i < 4; ++i)
    size |= static_cast<std::uint32_t>(static_cast<unsigned char>(head[i + 1])) << 8U * i;
  return size;
}

}  // namespace

std::string encode(FrameKind kind, std::string_view payload) {
  std::string bytes(1, static_cast<char>(kind));
  for (unsigned shift = 0; shift < 32; shift += 8)
    bytes += static_cast<char>(payload.size() >> shift & 0xffU);
  bytes += payload;
  return bytes;
}

std::string greeting() {
  return std::string(kGreeting);
}

bool FrameReader::skip_to_greeting() {
  const std::size_t position = buffer_.find(kGreeting);
  if (position == std::string::npos) {
    preamble_ = buffer_;
    if (buffer_.size() > kMaxPreamble) refuse_frame("what answered is not acc");
    return false;
  }
  preamble_ = buffer_.substr(0, position);
  buffer_.erase(0, position + kGreeting.size());
  waits_for_greeting_ = false;
  return true;
}

std::vector<Frame> FrameReader::feed(std::string_view chunk) {
  buffer_ += chunk;
  if (waits_for_greeting_ && !skip_to_greeting()) return {};
  std::vector<Frame> frames;
  std::size_t used = 0;
  for (std::string_view rest = buffer_; rest.size() >= kHeadSize;
       rest = std::string_view(buffer_).substr(used)) {
    const std::size_t size = size_at(rest);
    if (!is_kind(rest.front()) || size > kMaxPayload)
      refuse_frame("the connection carries something else than acc's frames");
    if (rest.size() < kHeadSize + size) break;
    frames.push_back({static_cast<FrameKind>(rest.front()), std::string(rest.substr(kHeadSize, size))});
    used += kHeadSize + size;
  }
  buffer_.erase(0, used);
  return frames;
}

}  // namespace acc::launcher
