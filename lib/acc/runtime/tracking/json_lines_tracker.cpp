// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/tracking/json_lines_tracker.hpp"

#include <nlohmann/json.hpp>

#include "acc/runtime/tracking/seconds_since_1970.hpp"

namespace acc {
namespace {

// The order of members is kept.
using Json = nlohmann::ordered_json;

Json json_of(const TrackedScalar& scalar) {
  return std::visit([](const auto& value) { return Json(value); }, scalar);
}

Json json_of(const TrackedGroup& group) {
  Json object = Json::object();
  for (const auto& [name, number] : group) object[name] = number;
  return object;
}

std::string line(const Json& object) {
  // Bytes that are no text must not end a training.
  return object.dump(-1, ' ', false, Json::error_handler_t::replace) + '\n';
}

}  // namespace

void JsonLinesTracker::start(const std::string& project, const TrackedConfig& config) {
  file_.emplace(logging_dir_ / (project + ".jsonl"));
  file_->cut_unfinished_line();
  Json object{{"project", project}, {"time", seconds_since_1970()}, {"config", Json::object()}};
  for (const auto& [name, value] : config) object["config"][name] = json_of(value);
  file_->append(line(object));
}

void JsonLinesTracker::log(const TrackedValues& values, std::optional<std::int64_t> step) {
  Json object = Json::object();
  if (step) object["step"] = *step;
  object["time"] = seconds_since_1970();
  object["values"] = Json::object();
  for (const auto& [name, value] : values)
    object["values"][name] = std::visit([](const auto& one) { return json_of(one); }, value);
  file_->append(line(object));
}

}  // namespace acc
