// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "acc/plan/launch_plan.hpp"

namespace acc::launcher {

/// A host with an optional port. An IPv6 address has no brackets.
struct Endpoint {
  std::string host = {};
  std::optional<std::uint16_t> port = {};

  bool operator==(const Endpoint&) const = default;
};

/// Parses `host`, `host:port`, `[v6]` or `[v6]:port` by torchrun 2.11's rules: without brackets the last
/// `:` precedes the port, where an address precedes it. Throws Error{usage} with `where` for anything else.
Endpoint parse_endpoint(std::string_view text, const std::string& where);

/// Parses the name or address of a machine, without a port; an IPv6 address may have brackets. Throws
/// Error{usage} with `where`, and `hint` beside the examples, for anything else.
std::string parse_host(std::string_view text, const std::string& where, const std::string& hint = "");

/// Parses torchrun's `--tee` and `--redirects`: `0` to `3`, or `RANK:N,RANK:N` (the last entry of a rank
/// wins). Throws Error{usage} with `where`.
StreamMap parse_stream_map(std::string_view text, const std::string& where);

/// Parses a list of ranks, as in `0,2,5` or `0-3,8`; it may be empty. Throws Error{usage} with `where`.
std::vector<int> parse_ranks(std::string_view text, const std::string& where);

/// Splits words at commas; `,,` is a comma inside a word. Empty words are dropped.
std::vector<std::string> parse_words(std::string_view text);

/// Parses full names of signals, as in `SIGTERM,SIGUSR1`. Throws Error{usage} with `where` for unknown
/// names, and for signals that cannot be handled or that report a fault of the program.
std::vector<int> parse_signals(std::string_view text, const std::string& where);

/// The number of the signal with this full name; 0 if there is none.
int signal_number(std::string_view name);

/// Parses `--retry-on`: entries separated by commas, each an exit code or a range (`1`, `64-78`), the name
/// of a signal, `signal` for any signal, `oom`, or `all`. An entry with a leading `!` excludes; if all
/// entries exclude, every other failure is retried. Throws Error{usage} with `where`.
RetryOn parse_retry_on(std::string_view text, const std::string& where);

}  // namespace acc::launcher
