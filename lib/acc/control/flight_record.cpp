// SPDX-License-Identifier: Apache-2.0
#include "acc/control/flight_record.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>

#include "acc/base/error.hpp"
#include "acc/base/files.hpp"
#include "acc/base/printable.hpp"
#include "acc/base/text.hpp"
#include "acc/control/control_client.hpp"

namespace acc::launcher {
namespace {

using nlohmann::json;

constexpr std::string_view kDefaultGroup = "default_pg";
constexpr std::string_view kNoDescription = "undefined";
constexpr std::size_t kMaxTensors = 3;
// In others ranks may send tensors of different sizes.
constexpr std::array<std::string_view, 10> kOfEqualSizes = {
    "all_reduce",     "all_reduce_coalesced", "broadcast",
    "reduce",         "all_gather",           "_all_gather_base",
    "reduce_scatter", "_reduce_scatter_base", "all_gather_coalesced",
    "barrier"};

// Of a record everything may be missing: each torch has fields of its own.
template <class Value>
Value field(const json& object, const char* name, Value default_value) {
  const auto value = object.find(name);
  if (value == object.end()) return default_value;
  try {
    return value->get<Value>();
  } catch (const json::exception&) {
    return default_value;
  }
}

// `float [4], float [2, 3]`
std::string describe_tensors(const json& entry) {
  const auto types = field<std::vector<std::string>>(entry, "input_dtypes", {});
  const auto sizes = field<std::vector<std::vector<std::int64_t>>>(entry, "input_sizes", {});
  std::vector<std::string> tensors;
  for (std::size_t i = 0; i < std::min(sizes.size(), kMaxTensors); ++i) {
    const std::string type = i < types.size() ? to_lower(types[i]) + " " : std::string();
    tensors.push_back(fmt::format("{}[{}]", type, fmt::join(sizes[i], ", ")));
  }
  if (sizes.size() > kMaxTensors) tensors.push_back(fmt::format("{} more", sizes.size() - kMaxTensors));
  return join(tensors, ", ");
}

// `gloo:all_reduce`, `nccl:send 0->1`
std::string name_without_backend(const std::string& name) {
  return name.substr(name.find(':') + 1);
}

CollectiveCall call_of(const json& entry) {
  const auto group = field<std::vector<std::string>>(entry, "process_group", {});
  const std::string description = group.size() > 1 ? group[1] : std::string();
  const bool has_description = description != kDefaultGroup && description != kNoDescription;
  const bool between_two = field(entry, "is_p2p", false);
  return {
      .name = name_without_backend(field<std::string>(entry, "profiling_name", "")),
      .number = field<std::int64_t>(entry, between_two ? "p2p_seq_id" : "collective_seq_id", 0),
      .between_two = between_two,
      .group = group.empty() ? std::string() : group[0],
      .description = has_description ? description : std::string(),
      .tensors = describe_tensors(entry),
      .has_ended = field(entry, "retired", false) || field<std::string>(entry, "state", "") == "completed"};
}

// `all_reduce (float [4])`; the sizes only where they must be the same.
std::string signature(const CollectiveCall& call) {
  const bool has_equal_sizes = std::ranges::find(kOfEqualSizes, call.name) != kOfEqualSizes.end();
  return printable(has_equal_sizes && !call.tensors.empty() ? call.name + " (" + call.tensors + ")"
                                                            : call.name);
}

// An address has 107 bytes, which the path may exceed: it is named below its folder's descriptor.
Descriptor connect_to_worker(const std::filesystem::path& path) {
  const Descriptor folder(::open(path.parent_path().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  const std::string name = fmt::format("/proc/self/fd/{}/{}", folder.get(), path.filename().string());
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (!folder || name.size() >= sizeof address.sun_path) return {};
  name.copy(address.sun_path, name.size());
  Descriptor connection(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (::connect(connection.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return {};
  ::fcntl(connection.get(), F_SETFL, 0);
  return connection;
}

std::vector<CollectiveCall> read_calls(ControlClient client,
                                       std::chrono::steady_clock::time_point deadline) try {
  std::vector<CollectiveCall> calls;
  if (const std::optional<json> answer = client.read_message(deadline)) {
    for (const json& record : field<std::vector<json>>(*answer, "records", {}))
      std::ranges::move(collective_calls(record), std::back_inserter(calls));
  }
  return calls;
} catch (const Error&) {
  return {};
}

}  // namespace

std::string to_string(const CollectiveCall& call) {
  std::string text = fmt::format("{} {}", call.name, call.number);
  if (!call.description.empty()) text += " of " + call.description;
  if (!call.tensors.empty()) text += " (" + call.tensors + ")";
  return printable(text);
}

std::vector<CollectiveCall> collective_calls(const json& record) {
  std::vector<json> entries = field<std::vector<json>>(record, "entries", {});
  std::erase_if(entries, [](const json& entry) { return !entry.is_object(); });
  std::ranges::stable_sort(entries, {},
                           [](const json& entry) { return field<std::int64_t>(entry, "record_id", 0); });
  std::vector<CollectiveCall> calls;
  std::ranges::transform(entries, std::back_inserter(calls), call_of);
  return calls;
}

const CollectiveCall* pending_call(const std::vector<CollectiveCall>& calls) {
  const auto pending = std::ranges::find(calls, false, &CollectiveCall::has_ended);
  return pending == calls.end() ? nullptr : &*pending;
}

std::string with_pending(std::string_view standing, const CollectiveCall& call) {
  const std::string position = "in " + printable(call.name);
  const bool is_named = standing == position || standing.starts_with(position + " ");
  if (!is_named) return fmt::format("{}, {} under way", standing, to_string(call));
  return fmt::format("in {}{}", to_string(call), standing.substr(position.size()));
}

std::string differing_calls(const std::map<int, std::vector<CollectiveCall>>& calls_of_ranks) {
  // By group and number.
  std::map<std::pair<std::string, std::int64_t>, std::map<std::string, std::vector<int>>> signatures;
  std::map<std::pair<std::string, std::int64_t>, std::string> pending;
  for (const auto& [rank, calls] : calls_of_ranks) {
    for (const CollectiveCall& call : calls) {
      if (call.between_two) continue;
      const std::pair key(call.group, call.number);
      signatures[key][signature(call)].push_back(rank);
      if (!call.has_ended) pending[key] = call.description;
    }
  }
  std::vector<std::string> lines;
  for (const auto& [key, description] : pending) {
    const auto& variants = signatures[key];
    if (variants.size() < 2) continue;
    std::vector<std::pair<std::string, std::vector<int>>> groups(variants.begin(), variants.end());
    std::ranges::stable_sort(groups, {}, [](const auto& group) { return group.second.size(); });
    std::vector<std::string> parts;
    for (const auto& [text, ranks] : groups)
      parts.push_back(fmt::format("{} on {}", text, name_ranks(ranks)));
    const std::string group_text = description.empty() ? std::string() : " of " + printable(description);
    lines.push_back(fmt::format("call {}{} differs: {}", key.second, group_text, join(parts, "; ")));
  }
  return join(lines, "\n");
}

std::string flight_record_socket(const std::string& page) {
  return page + ".calls";
}

std::map<int, std::vector<CollectiveCall>> read_flight_records(
    const std::map<int, std::string>& sockets_of_ranks, std::chrono::steady_clock::time_point deadline) {
  // All are asked before the first is waited for.
  std::vector<std::pair<int, ControlClient>> workers;
  for (const auto& [rank, path] : sockets_of_ranks) {
    if (Descriptor connection = connect_to_worker(path)) workers.emplace_back(rank, std::move(connection));
  }
  std::map<int, std::vector<CollectiveCall>> calls;
  for (auto& [rank, client] : workers) {
    auto calls_of_rank = read_calls(std::move(client), deadline);
    if (!calls_of_rank.empty()) calls[rank] = std::move(calls_of_rank);
  }
  return calls;
}

}  // namespace acc::launcher
