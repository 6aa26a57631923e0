// SPDX-License-Identifier: Apache-2.0
#include "acc/control/python_position.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "acc/base/printable.hpp"
#include "acc/base/text.hpp"

namespace acc::launcher {
namespace {

struct Frame {
  std::string function = {};
  std::string file = {};
  std::string line = {};
};

// The length of the part of a library file's path that Python finds it by; 0 if it is not a library's.
std::size_t library_root(std::string_view file) {
  for (const std::string_view packages : {"/site-packages/", "/dist-packages/"}) {
    const std::size_t at = file.rfind(packages);
    if (at != std::string_view::npos) return at + packages.size();
  }
  const std::size_t standard = file.rfind("/lib/python3");
  if (standard == std::string_view::npos) return 0;
  return std::min(file.find('/', standard + 5), file.size() - 1) + 1;
}

bool is_library(const Frame& frame) {
  return library_root(frame.file) > 0 || frame.file.starts_with('<');
}

// Functions between a caller and what it has called.
bool is_wrapper(std::string_view function) {
  constexpr std::array<std::string_view, 7> kWrappers = {
      "wrapper", "inner", "_fn", "_wrapped_call_impl", "_call_impl", "decorate_context", "__call__"};
  return std::ranges::find(kWrappers, function) != kWrappers.end();
}

// Collective operations, and backward, in which gradients are averaged.
bool waits_for_others(const Frame& frame) {
  return frame.file.find("/torch/distributed/") != std::string::npos ||
         frame.file.ends_with("/torch/nn/parallel/distributed.py") ||
         (frame.file.ends_with("/torch/_tensor.py") && frame.function == "backward");
}

// `frames`: the innermost first.
std::optional<PythonPosition> position_of(const std::vector<Frame>& frames) {
  if (frames.empty()) return std::nullopt;
  auto user_frame = std::ranges::find_if_not(frames, is_library);
  if (user_frame == frames.end()) --user_frame;
  PythonPosition position = {.line = user_frame->file.substr(user_frame->file.rfind('/') + 1) + ":" +
                                     user_frame->line};
  for (auto callee = user_frame; callee != frames.begin();) {
    --callee;
    if (position.call.empty() && !is_wrapper(callee->function)) position.call = callee->function;
    position.waits = position.waits || waits_for_others(*callee);
  }
  return position;
}

// `    _logger.<locals>.wrapper (/usr/lib/python3.11/logging.py:83)`
std::optional<Frame> frame_of_dump(std::string_view line) {
  const std::size_t open = line.rfind(" (");
  const std::size_t colon = line.rfind(':');
  if (open == std::string_view::npos || colon == std::string_view::npos || colon < open ||
      !line.ends_with(')'))
    return std::nullopt;
  const std::string_view name = trim(line.substr(0, open));
  return Frame{.function = std::string(name.substr(name.rfind('.') + 1)),
               .file = std::string(line.substr(open + 2, colon - open - 2)),
               .line = std::string(line.substr(colon + 1, line.size() - colon - 2))};
}

// `[rank0]:   File "/home/me/train.py", line 5, in <module>`
std::optional<Frame> frame_of_traceback(std::string_view line) {
  constexpr std::string_view kFile = "  File \"";
  constexpr std::string_view kLine = "\", line ";
  constexpr std::string_view kIn = ", in ";
  const std::size_t file = line.find(kFile);
  const std::size_t number = line.find(kLine, file);
  const std::size_t in = line.find(kIn, number);
  if (in == std::string_view::npos || file == std::string_view::npos) return std::nullopt;
  const std::size_t begin = file + kFile.size();
  return Frame{.function = std::string(trim(line.substr(in + kIn.size()))),
               .file = std::string(line.substr(begin, number - begin)),
               .line = std::string(line.substr(number + kLine.size(), in - number - kLine.size()))};
}

}  // namespace

std::optional<PythonPosition> position_of_main_thread(std::string_view dump) {
  std::vector<Frame> frames;
  bool is_main = false;
  for (const std::string& line : split(dump, '\n')) {
    if (line.starts_with("Thread ")) {
      is_main = line.ends_with("\"MainThread\"");
    } else if (auto frame = is_main ? frame_of_dump(line) : std::nullopt) {
      frames.push_back(std::move(*frame));
    }
  }
  return position_of(frames);
}

std::optional<PythonPosition> position_of_traceback(std::string_view text) {
  std::vector<Frame> frames;
  for (const std::string& line : split(text, '\n')) {
    if (line.find("Traceback (most recent call last):") != std::string::npos) frames.clear();
    if (auto frame = frame_of_traceback(line)) frames.push_back(std::move(*frame));
  }
  std::ranges::reverse(frames);
  return position_of(frames);
}

std::string to_string(const PythonPosition& position) {
  const std::string at = "at " + printable(position.line);
  return position.call.empty() ? at : fmt::format("in {} {}", printable(position.call), at);
}

std::string shorten_python_stacks(std::string_view dump) {
  std::string text;
  for (const std::string& line : split(dump, '\n')) {
    const auto frame = line.starts_with(' ') ? frame_of_dump(line) : std::nullopt;
    const std::size_t root = frame ? library_root(frame->file) : 0;
    const std::size_t open = line.rfind(" (");
    text += root == 0 ? line : line.substr(0, open + 2) + line.substr(open + 2 + root);
    text += '\n';
  }
  if (!text.empty()) text.pop_back();
  return text;
}

RankStanding standing_of(const PythonPosition& position) {
  return {.waits = position.waits, .position = to_string(position)};
}

}  // namespace acc::launcher
