// SPDX-License-Identifier: Apache-2.0
#include "acc/plan/flag_grammars.hpp"

#include <string.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <csignal>
#include <limits>
#include <optional>

#include "acc/base/error.hpp"
#include "acc/base/host_name.hpp"
#include "acc/base/text.hpp"

namespace acc::launcher {
namespace {

// Where the host ends: at the last colon, unless it is one of an IPv6 address.
std::size_t find_end_of_host(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  const bool brackets_alone = text.starts_with('[') && text.ends_with(']');
  const bool is_address = is_v6_address(text) && !is_v6_address(text.substr(0, colon));
  return brackets_alone || is_address ? std::string_view::npos : colon;
}

std::optional<std::uint16_t> parse_port(std::string_view text) {
  const bool digits = !text.empty() && text.size() <= 5 && std::ranges::all_of(text, [](char c) {
    return std::isdigit(static_cast<unsigned char>(c)) != 0;
  });
  const auto port = digits ? parse_integer(text) : std::nullopt;
  if (!port || *port > 65535) return std::nullopt;
  return static_cast<std::uint16_t>(*port);
}

}  // namespace

Endpoint parse_endpoint(std::string_view text, const std::string& where) {
  const std::string_view whole = trim(text);
  const auto fail = [&](const std::string& what) -> Error {
    return Error({.what = "'" + std::string(whole) + "' " + what,
                  .where = where,
                  .hint = "as in node0, node0:29400 or [fe80::1]:29400"});
  };
  const std::size_t colon = find_end_of_host(whole);
  Endpoint endpoint;
  const auto host = parse_host_name(whole.substr(0, colon));
  if (!host) throw fail("is not host:port");
  endpoint.host = *host;
  if (colon == std::string_view::npos) return endpoint;
  endpoint.port = parse_port(whole.substr(colon + 1));
  if (!endpoint.port) throw fail("needs a port from 0 to 65535 after its last colon");
  return endpoint;
}

std::string parse_host(std::string_view text, const std::string& where, const std::string& hint) {
  const std::string_view whole = trim(text);
  if (const auto host = parse_host_name(whole)) return *host;
  const std::string what =
      whole.empty() ? "is empty" : "'" + shorten(whole) + "' is not the name or address of a machine";
  throw Error(
      {.what = what, .where = where, .hint = "as in node0 or 10.0.0.1" + (hint.empty() ? "" : "; " + hint)});
}

namespace {

std::optional<Streams> parse_streams(std::string_view text) {
  if (text.size() != 1 || text.front() < '0' || text.front() > '3') return std::nullopt;
  return static_cast<Streams>(text.front() - '0');
}

std::optional<int> parse_rank(std::string_view text) {
  const auto rank = parse_integer(text);
  if (!rank || *rank < 0 || *rank > std::numeric_limits<int>::max()) return std::nullopt;
  return static_cast<int>(*rank);
}

}  // namespace

StreamMap parse_stream_map(std::string_view text, const std::string& where) {
  if (const auto all = parse_streams(trim(text))) return {.default_streams = *all};
  StreamMap map;
  for (const std::string& entry : split(text, ',')) {
    const std::size_t colon = entry.find(':');
    const auto rank = colon == std::string::npos ? std::nullopt : parse_rank(entry.substr(0, colon));
    const auto streams =
        colon == std::string::npos ? std::nullopt : parse_streams(trim(entry.substr(colon + 1)));
    if (!rank || !streams) {
      throw Error({.what = "'" + std::string(text) + "' is neither 0, 1, 2 or 3 nor a list RANK:N",
                   .where = where,
                   .hint = "0 none, 1 stdout, 2 stderr, 3 both; as in 3 or 0:3,1:2"});
    }
    map.of_rank[*rank] = *streams;
  }
  return map;
}

std::vector<int> parse_ranks(std::string_view text, const std::string& where) {
  constexpr int kMaxRanks = 1 << 20;
  std::vector<int> ranks;
  if (trim(text).empty()) return ranks;
  for (const std::string& entry : split(text, ',')) {
    const std::size_t dash = entry.find('-');
    const auto first = parse_rank(entry.substr(0, dash));
    const auto last = dash == std::string::npos ? first : parse_rank(entry.substr(dash + 1));
    if (!first || !last || *last < *first || *last - *first >= kMaxRanks)
      throw Error({.what = "'" + entry + "' is not a rank", .where = where, .hint = "as in 0,2,5 or 0-3"});
    if (*last - *first >= kMaxRanks - static_cast<int>(ranks.size()))
      throw Error({.what = "names more than " + std::to_string(kMaxRanks) + " ranks", .where = where});
    for (int rank = *first; rank <= *last; ++rank) ranks.push_back(rank);
  }
  return ranks;
}

std::vector<std::string> parse_words(std::string_view text) {
  std::vector<std::string> words(1);
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != ',') {
      words.back() += text[i];
    } else if (text.substr(i + 1).starts_with(',')) {
      words.back() += text[i++];
    } else {
      words.emplace_back();
    }
  }
  std::erase(words, "");
  return words;
}

namespace {

constexpr std::array kNotAllowed = {SIGKILL, SIGSTOP, SIGCHLD, SIGPIPE, SIGSEGV, SIGBUS,
                                    SIGFPE,  SIGILL,  SIGABRT, SIGTRAP, SIGSYS};

std::vector<std::string> signal_names() {
  std::vector<std::string> result = {"SIGIO", "SIGRTMIN", "SIGRTMAX"};
  for (int signal = 1; signal < NSIG; ++signal) {
    if (const char* name = ::sigabbrev_np(signal)) result.push_back(std::string("SIG") + name);
  }
  return result;
}

}  // namespace

int signal_number(std::string_view name) {
  // Python's other names.
  if (name == "SIGIO") return SIGIO;
  if (name == "SIGCLD") return SIGCHLD;
  if (name == "SIGIOT") return SIGABRT;
  if (name == "SIGRTMIN") return SIGRTMIN;
  if (name == "SIGRTMAX") return SIGRTMAX;
  for (int signal = 1; signal < NSIG; ++signal) {
    const char* abbreviation = ::sigabbrev_np(signal);
    if (abbreviation != nullptr && name == std::string("SIG") + abbreviation) return signal;
  }
  return 0;
}

std::vector<int> parse_signals(std::string_view text, const std::string& where) {
  std::vector<int> signals;
  for (const std::string& entry : split(text, ',')) {
    const std::string name(trim(entry));
    const int signal = signal_number(name);
    if (signal == 0) {
      const std::string suggestion =
          did_you_mean(name.starts_with("SIG") ? name : "SIG" + to_upper(name), signal_names());
      throw Error({.what = "'" + name + "' is not the name of a signal",
                   .where = where,
                   .hint = suggestion.empty() ? "as in SIGTERM,SIGUSR1" : suggestion});
    }
    if (std::ranges::find(kNotAllowed, signal) != kNotAllowed.end()) {
      throw Error(
          {.what = name + " cannot be used to end the job", .where = where, .hint = "as in SIGTERM,SIGUSR1"});
    }
    signals.push_back(signal);
  }
  return signals;
}

namespace {

bool add_exit_codes(std::string_view text, FailureKinds& kinds) {
  const std::size_t dash = text.find('-');
  const auto first = parse_integer(text.substr(0, dash));
  const auto last = dash == std::string_view::npos ? first : parse_integer(text.substr(dash + 1));
  if (!first || !last || *first < 1 || *last > 255 || *last < *first) return false;
  for (auto code = *first; code <= *last; ++code) kinds.exit_codes.insert(static_cast<int>(code));
  return true;
}

bool add(std::string_view text, FailureKinds& kinds) {
  if (text == "oom") return kinds.oom = true;
  if (text == "signal") return kinds.any_signal = true;
  if (const int signal = signal_number(text); signal != 0) return kinds.signals.insert(signal).second || true;
  return add_exit_codes(text, kinds);
}

}  // namespace

RetryOn parse_retry_on(std::string_view text, const std::string& where) {
  RetryOn result;
  bool all = false;
  for (const std::string& entry : split(text, ',')) {
    std::string_view what = trim(entry);
    const bool denied = what.starts_with('!');
    if (denied) what = trim(what.substr(1));
    if (what == "all" && !denied) {
      all = true;
    } else if (!add(what, denied ? result.excluded : result.included)) {
      throw Error({.what = "'" + std::string(trim(entry)) + "' is not a kind of failure",
                   .where = where,
                   .hint = "exit codes, names of signals, signal, oom, all; ! in front excludes, as in "
                           "signal,!SIGSEGV,75"});
    }
  }
  result.all = all || result.included == FailureKinds{};
  return result;
}

}  // namespace acc::launcher
