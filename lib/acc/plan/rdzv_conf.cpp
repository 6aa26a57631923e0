// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <span>

#include "acc/base/error.hpp"
#include "acc/base/text.hpp"
#include "acc/plan/rendezvous.hpp"

namespace acc::launcher {
namespace {

using Backends = unsigned;
constexpr Backends kStatic = 1;
constexpr Backends kC10d = 2;
constexpr Backends kEtcd = 4;

Backends bit_of(RendezvousKind backend) {
  return backend == RendezvousKind::static_ ? kStatic : backend == RendezvousKind::c10d ? kC10d : kEtcd;
}

std::string_view name_of(RendezvousKind backend) {
  return backend == RendezvousKind::static_ ? "static" : backend == RendezvousKind::c10d ? "c10d" : "etcd";
}

// Applies a value to the plan. Returns what is wrong with it, or an empty string.
using Apply = std::function<std::string(RendezvousPlan&, const std::string&)>;

struct Key {
  std::string_view name;
  /// The back ends that use the key; 0: it is only validated.
  Backends backends = 0;
  Apply apply = {};
};

// torchrun accepts whole seconds only.
constexpr std::int64_t kMaxSeconds = 1'000'000'000;

std::string bad_seconds(const std::string& text) {
  const auto number = parse_integer(text);
  if (number && *number > 0 && *number <= kMaxSeconds) return {};
  return fmt::format("'{}' is not a positive whole number of seconds", text);
}

Apply set_seconds(std::chrono::milliseconds RendezvousPlan::* member) {
  return [member](RendezvousPlan& plan, const std::string& text) {
    std::string wrong = bad_seconds(text);
    if (wrong.empty()) plan.*member = std::chrono::seconds(*parse_integer(text));
    return wrong;
  };
}

// torchrun's agents end when they cannot reach the store in time, after 60 s by default; acc's nodes without
// the key look for it until the join timeout.
std::string apply_read_timeout(RendezvousPlan& plan, const std::string& text) {
  std::string wrong = set_seconds(&RendezvousPlan::read_timeout)(plan, text);
  if (wrong.empty()) plan.endpoint_timeout = plan.read_timeout;
  return wrong;
}

Apply checked_seconds() {
  return [](RendezvousPlan&, const std::string& text) { return bad_seconds(text); };
}

// A key of torchrun 2.15: the back-off after a failed compare-and-set, which acc does not need.
std::string check_backoff(RendezvousPlan&, const std::string& text) {
  const auto number = parse_number(text);
  if (number && *number >= 0) return {};
  return fmt::format("'{}' is not a non-negative number of seconds", text);
}

// `2.4`, `2.4.1`, `2.11.0+cu130`: only versions before 2.6 differ in the rendezvous.
std::string apply_torch_version(RendezvousPlan& plan, const std::string& text) {
  const std::vector<std::string> parts = split(text, '.');
  const auto major = parse_integer(parts.front());
  const auto minor = parts.size() > 1 ? parse_integer(parts[1]) : std::nullopt;
  if (!minor || major < 2 || (major == 2 && minor < 4))
    return fmt::format("'{}' is not torch 2.4 or a later version", text);
  const bool before = major == 2;
  plan.agents = before && minor == 4   ? TorchAgents::v2_4
                : before && minor == 5 ? TorchAgents::v2_5
                                       : TorchAgents::v2_6;
  return {};
}

Apply text(std::string RendezvousPlan::* member) {
  return [member](RendezvousPlan& plan, const std::string& value) {
    plan.*member = value;
    return std::string();
  };
}

std::string apply_attempts(RendezvousPlan& plan, const std::string& text) {
  const auto number = parse_integer(text);
  if (!number || *number < 1 || *number > 1'000'000)
    return fmt::format("'{}' is not a positive whole number", text);
  plan.keep_alive_max_attempt = static_cast<int>(*number);
  return {};
}

std::string apply_is_host(RendezvousPlan& plan, const std::string& text) {
  constexpr std::array<std::string_view, 5> kYes = {"1", "true", "t", "yes", "y"};
  constexpr std::array<std::string_view, 5> kNo = {"0", "false", "f", "no", "n"};
  const std::string word = to_lower(text);
  const bool yes = std::ranges::find(kYes, word) != kYes.end();
  if (!yes && std::ranges::find(kNo, word) == kNo.end())
    return fmt::format("'{}' is neither true nor false", text);
  plan.is_host = yes;
  return {};
}

// The endpoint names the file.
std::string apply_store_type(RendezvousPlan& plan, const std::string& text) {
  const std::string word = to_lower(text);
  if (word != "tcp" && word != "file") return fmt::format("'{}' is neither tcp nor file", text);
  plan.store_file.reset();
  if (word == "file") plan.store_file.emplace();
  return {};
}

std::string apply_secret_file(RendezvousPlan& plan, const std::string& text) {
  plan.secret_file = text;
  return {};
}

std::string apply_protocol(RendezvousPlan& plan, const std::string& text) {
  if (text != "http" && text != "https") return fmt::format("'{}' is neither http nor https", text);
  plan.protocol = text;
  return {};
}

std::span<const Key> keys() {
  using Plan = RendezvousPlan;
  static const std::vector<Key> table = {
      {"timeout", kStatic | kEtcd, set_seconds(&Plan::join_timeout)},
      {"join_timeout", kC10d, set_seconds(&Plan::join_timeout)},
      {"last_call_timeout", kC10d | kEtcd, set_seconds(&Plan::last_call_timeout)},
      {"close_timeout", kC10d, set_seconds(&Plan::close_timeout)},
      {"keep_alive_interval", kC10d, set_seconds(&Plan::keep_alive_interval)},
      {"keep_alive_max_attempt", kC10d, apply_attempts},
      {"read_timeout", kC10d, apply_read_timeout},
      {"is_host", kC10d, apply_is_host},
      {"store_type", kC10d, apply_store_type},
      {"etcd_prefix", kEtcd, text(&Plan::etcd_prefix)},
      {"protocol", kEtcd, apply_protocol},
      {"cert", kEtcd, text(&Plan::cert)},
      {"key", kEtcd, text(&Plan::key)},
      {"cacert", kEtcd, text(&Plan::cacert)},
      // For torchrun's heartbeats; acc's nodes keep connections (--node-timeout).
      {"heartbeat_timeout", 0, checked_seconds()},
      {"cas_backoff_max_seconds", 0, check_backoff},
      {"torch_version", kC10d | kStatic, apply_torch_version},
      {"secret_file", kC10d | kStatic | kEtcd, apply_secret_file},
  };
  return table;
}

// The hint for a key that torchrun refuses or overwrites, or that belonged to a removed back end.
std::string_view instead_of(std::string_view key) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 10> kInstead = {{
      {"backend", "use --rdzv-backend"},
      {"endpoint", "use --rdzv-endpoint"},
      {"run_id", "use --rdzv-id"},
      {"min_nodes", "use --nnodes MIN:MAX"},
      {"max_nodes", "use --nnodes MIN:MAX"},
      {"local_addr", "use --local-addr"},
      {"rank", "use --node-rank"},
      {"ssl_cert", "of the back end etcd-v2; with etcd it is called cert"},
      {"ssl_cert_key", "of the back end etcd-v2; with etcd it is called key"},
      {"ca_cert", "of the back end etcd-v2; with etcd it is called cacert"},
  }};
  const auto* entry = std::ranges::find(kInstead, key, &std::pair<std::string_view, std::string_view>::first);
  return entry == kInstead.end() ? std::string_view() : entry->second;
}

// Removes a pair of quotes that the shell left, as in `--rdzv-conf '"a=b"'`.
std::string_view without_quotes(std::string_view text) {
  const bool quoted =
      text.size() > 1 && (text.front() == '"' || text.front() == '\'') && text.front() == text.back();
  return quoted ? trim(text.substr(1, text.size() - 2)) : text;
}

Problem unknown(const std::string& key, const std::string& where) {
  if (const std::string_view hint = instead_of(key); !hint.empty())
    return {.what = "key '" + key + "' does not belong here", .where = where, .hint = std::string(hint)};
  std::vector<std::string> names;
  for (const Key& entry : keys()) names.emplace_back(entry.name);
  std::string hint = did_you_mean(key, names);
  if (hint.empty()) hint = "known are " + join(names, ", ");
  return {.what = "unknown key '" + key + "'", .where = where, .hint = hint};
}

}  // namespace

void apply_rdzv_conf(std::string_view conf, const std::string& where, RendezvousPlan& plan,
                     std::vector<std::string>& notes) {
  conf = without_quotes(trim(conf));
  if (conf.empty()) return;
  std::vector<Problem> problems;
  for (const std::string& entry : split(conf, ',')) {
    const std::size_t equals = entry.find('=');
    const std::string key(trim(std::string_view(entry).substr(0, equals)));
    const std::string value(equals == std::string::npos ? std::string_view()
                                                        : trim(std::string_view(entry).substr(equals + 1)));
    if (key.empty() || value.empty()) {
      problems.push_back({.what = "'" + std::string(trim(entry)) + "' is not key=value",
                          .where = where,
                          .hint = "as in join_timeout=600,is_host=true"});
      continue;
    }
    const auto match = std::ranges::find(keys(), key, &Key::name);
    if (match == keys().end()) {
      problems.push_back(unknown(key, where));
      continue;
    }
    const bool effective = (match->backends & bit_of(plan.backend)) != 0;
    RendezvousPlan unused = plan;
    if (std::string wrong = match->apply(effective ? plan : unused, value); !wrong.empty()) {
      problems.push_back({.what = key + ": " + wrong, .where = where});
    } else if (!effective) {
      notes.push_back(
          fmt::format("{}: {} has no effect with the back end {}", where, key, name_of(plan.backend)));
    }
  }
  if (!problems.empty()) throw Error(ErrorKind::usage, std::move(problems));
}

}  // namespace acc::launcher
