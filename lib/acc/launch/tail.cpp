// SPDX-License-Identifier: Apache-2.0
#include "acc/launch/tail.hpp"

#include <fstream>
#include <utility>

#include "acc/launch/error_text.hpp"

namespace acc::launcher {

void Tail::append(std::string_view chunk) {
  if (chunk.size() > kMaxRaw) {
    cut_ = true;
    bytes_.clear();
    chunk.remove_prefix(chunk.size() - kMaxRaw);
  }
  bytes_ += chunk;
  if (bytes_.size() <= 2 * kMaxRaw) return;
  cut_ = true;
  bytes_.erase(0, bytes_.size() - kMaxRaw);
}

std::string Tail::lines() const {
  std::string_view text = bytes_;
  bool cut = cut_;
  const auto keep_end = [&](std::size_t bytes) {
    if (text.size() > bytes) {
      text.remove_prefix(text.size() - bytes);
      cut = true;
    }
    if (std::exchange(cut, false) && text.find('\n') < text.size() - 1)
      text.remove_prefix(text.find('\n') + 1);
  };
  keep_end(kMaxRaw);
  const std::string readable = readable_error(text);
  text = readable;
  keep_end(kMostBytes);
  std::size_t begin = text.ends_with('\n') ? text.size() - 1 : text.size();
  for (int line = 0; line < kMostLines && begin != std::string_view::npos; ++line) {
    begin = begin == 0 ? std::string_view::npos : text.rfind('\n', begin - 1);
  }
  if (begin != std::string_view::npos) text.remove_prefix(begin + 1);
  return std::string(text);
}

std::string tail_of_file(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary | std::ios::ate);
  if (!in) return {};
  const std::streamoff size = in.tellg();
  constexpr auto kMost = static_cast<std::streamoff>(Tail::kMaxRaw);
  // One byte more than is shown: then the line that it begins in counts as cut off.
  in.seekg(size > kMost ? size - kMost - 1 : 0);
  std::string bytes(Tail::kMaxRaw + 1, '\0');
  in.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  bytes.resize(static_cast<std::size_t>(in.gcount()));
  Tail tail;
  tail.append(bytes);
  return tail.lines();
}

}  // namespace acc::launcher
