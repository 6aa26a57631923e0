// SPDX-License-Identifier: Apache-2.0
#include "acc/launch/root_cause.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <string_view>

#include "acc/base/text.hpp"

namespace acc::launcher {
namespace {

// Of Gloo, of NCCL, of torch's TCPStore, and of libacc.
constexpr std::array<std::string_view, 8> kLostPeer = {
    "Connection closed by peer",    "Connection reset by peer",
    "Connection was likely closed", "remote process exited or there was a network error",
    "failed to recv, got 0 bytes",  "Broken pipe",
    "ended or was lost: ",          "gave up waiting for rank",
};

bool tells_of_lost_peer(std::string_view text) {
  return std::ranges::any_of(
      kLostPeer, [&](std::string_view words) { return text.find(words) != std::string_view::npos; });
}

// Where a traceback says what happened: the last line that is not indented and has text.
std::string last_message(std::string_view text) {
  std::string message;
  for (const std::string& line : split(text, '\n')) {
    if (!line.empty() && line.front() != ' ' && line.front() != '\t') message = line;
  }
  return message;
}

// torch writes whole seconds, so nothing finer can be compared with them.
std::chrono::sys_seconds second_of_failure(const WorkerFailure& failure) {
  const bool told = failure.error_file && failure.error_file->when;
  return std::chrono::floor<std::chrono::seconds>(told ? *failure.error_file->when : failure.when);
}

bool is_exact(const WorkerFailure& failure) {
  return failure.error_file && failure.error_file->when && failure.error_file->exact;
}

bool failed_before(const WorkerFailure& one, const WorkerFailure& other) {
  if (!one.error_file || !one.error_file->when) return false;
  if (is_exact(one) && is_exact(other)) return *one.error_file->when < *other.error_file->when;
  return second_of_failure(one) < second_of_failure(other);
}

}  // namespace

bool is_consequence(const WorkerFailure& failure) {
  // An uncaught exception of a C++ program ends in SIGABRT; no other signal comes from a lost connection.
  const auto* signaled = std::get_if<Signaled>(&failure.status);
  if (signaled != nullptr && signaled->signal != SIGABRT) return false;
  if (failure.error_file)
    return failure.error_file->consequence || tells_of_lost_peer(failure.error_file->message);
  return tells_of_lost_peer(last_message(failure.last_words));
}

std::size_t find_root_cause(const std::vector<WorkerFailure>& seen) {
  std::size_t cause = 0;
  for (std::size_t i = 1; i < seen.size(); ++i) {
    const bool own = !is_consequence(seen[i]);
    const bool other = !is_consequence(seen[cause]);
    if (own != other ? own : failed_before(seen[i], seen[cause])) cause = i;
  }
  return cause;
}

}  // namespace acc::launcher
