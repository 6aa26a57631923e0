// SPDX-License-Identifier: Apache-2.0
#include "acc/launch/failure_text.hpp"

#include <fmt/format.h>

#include <csignal>

#include "acc/base/text.hpp"
#include "acc/launch/timestamp.hpp"

namespace acc {
namespace {

std::string how_it_ended(const WorkerFailure& failure) {
  if (failure.out_of_memory) return "was killed by the kernel for memory: signal 9 (SIGKILL)";
  if (std::holds_alternative<Exited>(failure.status)) return "failed with " + to_string(failure.status);
  std::string text = "was ended by " + to_string(failure.status);
  const bool killed = std::get<Signaled>(failure.status).signal == SIGKILL;
  if (killed) text += ", sent from outside: the kernel counted no kill for memory";
  return text;
}

void append_indented(std::string& block, std::string_view text) {
  while (text.ends_with('\n')) text.remove_suffix(1);
  for (const std::string& line : split(text, '\n')) block += "  | " + line + "\n";
}

void append_error_file(std::string& block, const ErrorFile& file) {
  block += fmt::format("  error file: {}{}\n", file.path.string(),
                       file.valid ? "" : " (not the expected JSON; its text follows)");
  // A traceback ends with the message.
  append_indented(block, file.traceback.empty() ? file.message : file.traceback);
}

}  // namespace

std::string summarize(const WorkerFailure& failure) {
  return fmt::format("rank {} (local rank {}, pid {}) on host {} {}", failure.rank, failure.local_rank,
                     failure.pid, failure.host, how_it_ended(failure));
}

std::string failure_text(const WorkerFailure& failure) {
  std::string block = "acc: " + summarize(failure) + "\n";
  block += fmt::format("  time: {}, attempt: {}\n", timestamp(failure.when), failure.attempt);
  if (failure.error_file) append_error_file(block, *failure.error_file);
  if (!failure.last_words.empty()) {
    block += "  last lines of its stderr:\n";
    append_indented(block, failure.last_words);
  }
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

}  // namespace acc
