// SPDX-License-Identifier: Apache-2.0
#include "acc/launch/error_text.hpp"

#include <algorithm>
#include <cctype>
#include <fstream>
#include <utility>
#include <vector>

namespace acc::launcher {
namespace {

using Lines = std::vector<std::string_view>;

bool is_digit(char letter) {
  return std::isdigit(static_cast<unsigned char>(letter)) != 0;
}

// Splits into lines, each with its newline.
Lines lines_of(std::string_view text) {
  Lines lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size() - 1);
    lines.push_back(text.substr(0, end + 1));
    text.remove_prefix(end + 1);
  }
  return lines;
}

// The line without torch's prefix `[rank3]: `, and without surrounding whitespace.
std::string_view content_of(std::string_view line) {
  constexpr std::string_view kBlanks = " \t\r\n";
  const auto trim_front = [&] { line.remove_prefix(std::min(line.find_first_not_of(kBlanks), line.size())); };
  trim_front();
  if (const std::size_t end = line.find("]:"); line.starts_with("[rank") && end != std::string_view::npos)
    line.remove_prefix(end + 2);
  trim_front();
  return line.substr(0, line.find_last_not_of(kBlanks) + 1);
}

// `frame #3: c10::Error::Error(...) + 0x80 (0x7f... in libc10.so)`, or what newer versions write: `#3
// c10::...`.
bool is_frame(std::string_view line, bool captured) {
  if (line.starts_with("frame ")) {
    line.remove_prefix(6);
  } else if (!captured) {
    return false;
  }
  return line.size() > 1 && line[0] == '#' && is_digit(line[1]);
}

bool begins_stack(std::string_view line) {
  return line.starts_with("Exception raised from ") && line.ends_with("(most recent call first):");
}

// `[W1122 13:59:06.123 file.cpp:14] ...`, or `train.py:3: UserWarning: ...`.
bool is_warning(std::string_view line) {
  if (line.starts_with("[W")) return line.size() > 2 && (is_digit(line[2]) || line[2] == ' ');
  const std::size_t colon = line.find("Warning: ");
  if (colon == std::string_view::npos) return false;
  const std::size_t blank = line.rfind(' ', colon);
  return blank != std::string_view::npos && blank >= 2 && line[blank - 1] == ':' && is_digit(line[blank - 2]);
}

Lines without_stack(const Lines& lines) {
  constexpr std::string_view kCaptured = "C++ CapturedTraceback:";
  Lines result;
  bool captured = false;
  for (const std::string_view line : lines) {
    const std::string_view content = content_of(line);
    if (content == kCaptured) {
      captured = true;
    } else if (!is_frame(content, captured) && !begins_stack(content)) {
      captured = false;
      result.push_back(line);
    }
  }
  return result;
}

// Python prints a source line after a warning.
Lines without_warnings_at_end(Lines lines) {
  Lines original = lines;
  while (!lines.empty()) {
    const std::string_view content = content_of(lines.back());
    if (content.empty() || is_warning(content)) {
      lines.pop_back();
    } else if (lines.size() > 1 && lines.back().starts_with("  ") &&
               is_warning(content_of(lines[lines.size() - 2]))) {
      lines.resize(lines.size() - 2);
    } else {
      return lines;
    }
  }
  return original;
}

}  // namespace

std::string readable_error(std::string_view text) {
  std::string result;
  for (const std::string_view line : without_warnings_at_end(without_stack(lines_of(text)))) result += line;
  return result;
}

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
  keep_end(kMaxBytes);
  std::size_t begin = text.ends_with('\n') ? text.size() - 1 : text.size();
  for (int line = 0; line < kMaxLines && begin != std::string_view::npos; ++line) {
    begin = begin == 0 ? std::string_view::npos : text.rfind('\n', begin - 1);
  }
  if (begin != std::string_view::npos) text.remove_prefix(begin + 1);
  return std::string(text);
}

std::string tail_of_file(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary | std::ios::ate);
  if (!in) return {};
  const std::streamoff size = in.tellg();
  constexpr auto kMax = static_cast<std::streamoff>(Tail::kMaxRaw);
  // Reads one byte more than kMaxRaw, so that Tail counts the first line as truncated.
  in.seekg(size > kMax ? size - kMax - 1 : 0);
  std::string bytes(Tail::kMaxRaw + 1, '\0');
  in.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  bytes.resize(static_cast<std::size_t>(in.gcount()));
  Tail tail;
  tail.append(bytes);
  return tail.lines();
}

}  // namespace acc::launcher
