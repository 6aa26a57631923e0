// SPDX-License-Identifier: Apache-2.0
#include "acc/launch/failure_text.hpp"

#include <fmt/format.h>

#include <csignal>

#include "acc/base/text.hpp"
#include "acc/launch/error_text.hpp"
#include "acc/launch/line_prefix.hpp"

namespace acc::launcher {
namespace {

std::string how_it_ended(const WorkerFailure& failure) {
  if (failure.out_of_memory) return "was killed by the kernel for memory: signal 9 (SIGKILL)";
  if (std::holds_alternative<Exited>(failure.status)) return "failed with " + to_string(failure.status);
  std::string text = "was ended by " + to_string(failure.status);
  const bool killed = std::get<Signaled>(failure.status).signal == SIGKILL;
  if (killed) text += "; the kernel counted no kill for memory";
  return text;
}

std::string_view last_line(std::string_view text) {
  while (text.ends_with('\n')) text.remove_suffix(1);
  return text.substr(text.rfind('\n') + 1);
}

void append_indented(std::string& block, std::string_view text) {
  while (text.ends_with('\n')) text.remove_suffix(1);
  for (const std::string& line : split(text, '\n')) block += "  | " + line + "\n";
}

// A traceback ends with the message.
std::string text_of(const ErrorFile& file) {
  return readable_error(file.traceback.empty() ? file.message : file.traceback);
}

void append_error_file(std::string& block, const ErrorFile& file, const std::string& text) {
  const std::string note = file.valid ? "" : " (not the expected JSON; its text follows)";
  if (file.stays) {
    block += fmt::format("  error file: {}{}\n", file.path.string(), note);
  } else if (!text.empty()) {
    block += fmt::format("  its error file{}:\n", note);
  }
  if (!text.empty()) append_indented(block, text);
}

// A worker's error file and its standard error often say the same: that is told once, where there is more of
// it.
void append_what_it_said(std::string& block, const WorkerFailure& failure) {
  const std::string& words = failure.last_words;
  const std::string text = failure.error_file ? text_of(*failure.error_file) : "";
  const bool same = !text.empty() && words.find(last_line(text)) != std::string::npos;
  const bool is_traceback = last_line(text).size() + 1 < text.size();
  if (failure.error_file) {
    const bool shown = same && (failure.just_above || !is_traceback);
    append_error_file(block, *failure.error_file, shown ? "" : text);
  }
  if (words.empty()) return;
  if (failure.just_above) {
    block += fmt::format("  the end of its stderr stands just above: {}\n", last_line(words));
  } else if (!same || !is_traceback) {
    block += "  last lines of its stderr:\n";
    append_indented(block, words);
  }
}

// Where a module is missing, another Python may well have it.
bool misses_module(const WorkerFailure& failure) {
  constexpr std::string_view kError = "ModuleNotFoundError: ";
  const auto& file = failure.error_file;
  return failure.last_words.find(kError) != std::string::npos ||
         (file && (file->message.find(kError) != std::string::npos ||
                   file->traceback.find(kError) != std::string::npos));
}

}  // namespace

std::string summarize(const WorkerFailure& failure) {
  return fmt::format("rank {} (local rank {}, pid {}) on host {} {}", failure.rank, failure.local_rank,
                     failure.pid, failure.host, how_it_ended(failure));
}

std::string failure_text(const WorkerFailure& failure, const std::string& python) {
  std::string block = "acc: " + summarize(failure) + "\n";
  block += fmt::format("  time: {}, attempt: {}\n", timestamp(failure.when), failure.attempt);
  append_what_it_said(block, failure);
  if (!python.empty() && misses_module(failure))
    block += fmt::format("  its Python: {}; --python names another\n", python);
  return block;
}

std::string name_ranks(const std::vector<int>& ranks) {
  std::vector<std::string> parts;
  for (std::size_t first = 0; first < ranks.size();) {
    std::size_t last = first;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
    if (last - first < 2) last = first;  // two neighbours read better one by one
    parts.push_back(last == first ? fmt::to_string(ranks[first])
                                  : fmt::format("{}-{}", ranks[first], ranks[last]));
    first = last + 1;
  }
  return (ranks.size() == 1 ? "rank " : "ranks ") + join(parts, ", ");
}

}  // namespace acc::launcher
