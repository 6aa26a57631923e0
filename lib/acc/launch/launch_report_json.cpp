// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <string_view>

#include "acc/base/printable.hpp"
#include "acc/launch/launch_report.hpp"
#include "acc/preflight/xid_json.hpp"

namespace acc::launcher {
namespace {

using Json = nlohmann::json;
using std::chrono::microseconds;

constexpr std::size_t kMaxText = std::size_t{16} << 10U;

std::string end_of(const std::string& text) {
  return text.substr(text.size() - std::min(text.size(), kMaxText));
}

std::int64_t to_microseconds(std::chrono::system_clock::time_point time) {
  return std::chrono::duration_cast<microseconds>(time.time_since_epoch()).count();
}

// Of a clock that no machine has, beyond which the clock's own type overflows, the epoch is left.
std::chrono::system_clock::time_point from_microseconds(std::int64_t number) {
  constexpr std::int64_t kLatest = 9'000'000'000'000'000;
  if (number < -kLatest || number > kLatest) return {};
  return std::chrono::system_clock::time_point(microseconds(number));
}

Json file_to_json(const ErrorFile& file) {
  Json json = {{"path", file.path.string()},
               {"message", end_of(file.message)},
               {"traceback", end_of(file.traceback)},
               {"valid", file.valid},
               {"stays", file.stays},
               {"exact", file.exact},
               {"consequence", file.consequence},
               {"lost_ranks", file.lost_ranks}};
  if (file.time) json["when"] = to_microseconds(*file.time);
  return json;
}

ErrorFile parse_file(const Json& json) {
  ErrorFile file = {.path = json.value("path", ""),
                    .message = json.value("message", ""),
                    .traceback = json.value("traceback", ""),
                    .valid = json.value("valid", true),
                    .stays = json.value("stays", true),
                    .exact = json.value("exact", false),
                    .consequence = json.value("consequence", false),
                    .lost_ranks = json.value("lost_ranks", std::vector<int>())};
  if (json.contains("when")) file.time = from_microseconds(json["when"].get<std::int64_t>());
  return file;
}

}  // namespace

std::string to_json_text(const WorkerFailure& failure) {
  Json json = {{"rank", failure.rank},
               {"local_rank", failure.local_rank},
               {"pid", failure.pid},
               {"host", failure.host},
               {"when", to_microseconds(failure.time)},
               {"attempt", failure.attempt},
               {"out_of_memory", failure.out_of_memory},
               {"last_words", end_of(failure.stderr_tail)}};
  if (const auto* exited = std::get_if<Exited>(&failure.status)) json["exit_code"] = exited->code;
  if (const auto* signaled = std::get_if<Signaled>(&failure.status)) {
    json["signal"] = signaled->signal;
    json["core_dumped"] = signaled->core_dumped;
  }
  if (failure.error_file) json["error_file"] = file_to_json(*failure.error_file);
  if (const auto& memory = failure.cgroup_memory) {
    json["memory_limit"] = memory->limit;
    if (memory->peak) json["memory_peak"] = *memory->peak;
  }
  if (failure.xids) json["xids"] = *failure.xids;
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

WorkerFailure parse_failure(std::string_view text) {
  WorkerFailure failure = {.status = Exited{1}};
  // A failure has no fractions, and converting one to an integer that cannot hold it is undefined.
  const auto is_possible = [](int /*depth*/, Json::parse_event_t event, const Json& value) {
    return event != Json::parse_event_t::value || !value.is_number_float();
  };
  const Json json = Json::parse(text, is_possible, false);
  if (!json.is_object()) return failure;
  try {
    failure.rank = json.value("rank", 0);
    failure.local_rank = json.value("local_rank", 0);
    failure.pid = json.value("pid", 0);
    failure.host = printable(json.value("host", ""));
    failure.time = from_microseconds(json.value("when", std::int64_t{0}));
    failure.attempt = json.value("attempt", 0);
    failure.out_of_memory = json.value("out_of_memory", false);
    failure.stderr_tail = json.value("last_words", "");
    failure.status = Exited{json.value("exit_code", 1)};
    if (json.contains("signal")) {
      failure.status = Signaled{json["signal"].get<int>(), json.value("core_dumped", false)};
    }
    if (json.contains("memory_limit")) {
      failure.cgroup_memory = {.limit = json["memory_limit"].get<std::uint64_t>()};
      if (json.contains("memory_peak"))
        failure.cgroup_memory->peak = json["memory_peak"].get<std::uint64_t>();
    }
    if (json.contains("xids")) failure.xids = json["xids"].get<std::vector<Xid>>();
    if (json.contains("error_file")) failure.error_file = parse_file(json["error_file"]);
  } catch (const Json::exception&) {
    return failure;
  }
  return failure;
}

}  // namespace acc::launcher
