// SPDX-License-Identifier: Apache-2.0
#include "acc/control/native_stacks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "acc/base/text.hpp"

namespace acc::launcher {
namespace {

struct Block {
  std::vector<int> threads = {};
  std::string frames = {};
};

// `#3  0x00007f in foo (a=1) from /lib/libc.so.6` becomes `#3  foo from libc.so.6`.
std::string shorten_frame(std::string_view line) {
  const std::size_t blank = line.find(' ');
  const std::string number(line.substr(0, blank));
  std::string_view rest = trim(line.substr(std::min(blank, line.size())));
  if (rest.starts_with("0x")) {
    const std::size_t in = rest.find(" in ");
    if (in != std::string_view::npos) rest.remove_prefix(in + 4);
  }
  const std::size_t arguments = rest.find(" (");
  std::string text(rest.substr(0, arguments));
  const std::size_t from = rest.rfind(" from ");
  const std::size_t at = rest.rfind(" at ");
  if (at != std::string_view::npos) {
    text += rest.substr(at);
  } else if (from != std::string_view::npos) {
    const std::string_view file = rest.substr(from + 6);
    text += " from " + std::string(file.substr(file.rfind('/') + 1));
  }
  return fmt::format("  {:<4}{}\n", number, text);
}

// `Thread 2 (Thread 0x7f (LWP 12) "name"):`
int thread_of(std::string_view line) {
  const std::string_view rest = line.substr(7);
  return static_cast<int>(parse_integer(rest.substr(0, rest.find(' '))).value_or(0));
}

std::string name_threads(std::vector<int> threads) {
  std::ranges::sort(threads);
  std::string text;
  for (std::size_t i = 0; i < threads.size();) {
    std::size_t last = i;
    while (last + 1 < threads.size() && threads[last + 1] == threads[last] + 1) ++last;
    if (!text.empty()) text += ", ";
    text += std::to_string(threads[i]);
    if (last > i) text += "-" + std::to_string(threads[last]);
    i = last + 1;
  }
  return (threads.size() == 1 ? "Thread " : "Threads ") + text;
}

}  // namespace

std::string shorten_native_stacks(std::string_view gdb_output) {
  std::vector<Block> blocks;
  bool in_python = false;
  for (const std::string& line : split(gdb_output, '\n')) {
    if (line.starts_with("Thread ")) {
      blocks.push_back({{thread_of(line)}, {}});
      in_python = false;
    } else if (line.starts_with('#') && !in_python) {
      if (blocks.empty()) blocks.push_back({{1}, {}});
      // What lies below the interpreter's loop is told better by the Python stack.
      in_python = line.find("_PyEval_EvalFrameDefault") != std::string::npos;
      blocks.back().frames += in_python ? "  ... called by Python code\n" : shorten_frame(line);
    }
  }
  std::vector<Block> kept;
  for (Block& block : blocks) {
    if (block.frames.empty()) continue;
    const auto same = std::ranges::find(kept, block.frames, &Block::frames);
    if (same == kept.end()) {
      kept.push_back(std::move(block));
    } else {
      same->threads.push_back(block.threads.front());
    }
  }
  // The first thread, which a program's own work is mostly in, comes first.
  std::ranges::sort(kept, {}, [](const Block& block) { return *std::ranges::min_element(block.threads); });
  std::string text;
  for (const Block& block : kept) text += name_threads(block.threads) + ":\n" + block.frames;
  return text;
}

std::string native_stacks_problem(std::string_view gdb_output) {
  std::string last;
  for (const std::string& line : split(gdb_output, '\n')) {
    if (line.starts_with("ptrace:") || line.find("Could not attach") != std::string::npos) return line;
    if (!trim(line).empty()) last = line;
  }
  return last.empty() ? "gdb said nothing" : last;
}

}  // namespace acc::launcher
