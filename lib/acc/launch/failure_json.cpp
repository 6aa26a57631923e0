// SPDX-License-Identifier: Apache-2.0
#include "acc/launch/failure_json.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace acc::launcher {
namespace {

using Json = nlohmann::json;
using std::chrono::microseconds;

constexpr std::size_t kMostText = std::size_t{16} << 10U;

std::string end_of(const std::string& text) {
  return text.substr(text.size() - std::min(text.size(), kMostText));
}

std::int64_t to_number(std::chrono::system_clock::time_point when) {
  return std::chrono::duration_cast<microseconds>(when.time_since_epoch()).count();
}

std::chrono::system_clock::time_point to_time(std::int64_t number) {
  return std::chrono::system_clock::time_point(microseconds(number));
}

Json to_json(const ErrorFile& file) {
  Json json = {{"path", file.path.string()},
               {"message", end_of(file.message)},
               {"traceback", end_of(file.traceback)},
               {"valid", file.valid},
               {"stays", file.stays},
               {"exact", file.exact},
               {"consequence", file.consequence}};
  if (file.when) json["when"] = to_number(*file.when);
  return json;
}

ErrorFile parse_file(const Json& json) {
  ErrorFile file = {.path = json.value("path", ""),
                    .message = json.value("message", ""),
                    .traceback = json.value("traceback", ""),
                    .valid = json.value("valid", true),
                    .stays = json.value("stays", true),
                    .exact = json.value("exact", false),
                    .consequence = json.value("consequence", false)};
  if (json.contains("when")) file.when = to_time(json["when"].get<std::int64_t>());
  return file;
}

}  // namespace

std::string to_json_text(const WorkerFailure& failure) {
  Json json = {{"rank", failure.rank},
               {"local_rank", failure.local_rank},
               {"pid", failure.pid},
               {"host", failure.host},
               {"when", to_number(failure.when)},
               {"attempt", failure.attempt},
               {"out_of_memory", failure.out_of_memory},
               {"last_words", end_of(failure.last_words)}};
  if (const auto* exited = std::get_if<Exited>(&failure.status)) json["exit_code"] = exited->code;
  if (const auto* signaled = std::get_if<Signaled>(&failure.status)) {
    json["signal"] = signaled->signal;
    json["core_dumped"] = signaled->core_dumped;
  }
  if (failure.error_file) json["error_file"] = to_json(*failure.error_file);
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

WorkerFailure parse_failure(std::string_view text) {
  WorkerFailure failure = {.status = Exited{1}};
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) return failure;
  try {
    failure.rank = json.value("rank", 0);
    failure.local_rank = json.value("local_rank", 0);
    failure.pid = json.value("pid", 0);
    failure.host = json.value("host", "");
    failure.when = to_time(json.value("when", std::int64_t{0}));
    failure.attempt = json.value("attempt", 0);
    failure.out_of_memory = json.value("out_of_memory", false);
    failure.last_words = json.value("last_words", "");
    failure.status = Exited{json.value("exit_code", 1)};
    if (json.contains("signal")) {
      failure.status = Signaled{json["signal"].get<int>(), json.value("core_dumped", false)};
    }
    if (json.contains("error_file")) failure.error_file = parse_file(json["error_file"]);
  } catch (const Json::exception&) {
    return failure;
  }
  return failure;
}

}  // namespace acc::launcher
