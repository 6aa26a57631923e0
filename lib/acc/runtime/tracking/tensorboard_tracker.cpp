// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/tracking/tensorboard_tracker.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "acc/base/files.hpp"
#include "acc/runtime/tracking/seconds_since_1970.hpp"
#include "acc/runtime/tracking/summary_event.hpp"

namespace acc {
namespace {

// JSON's quoted text is YAML's, too.
std::string yaml(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string yaml(bool truth) {
  return truth ? "true" : "false";
}

std::string yaml(std::int64_t whole) {
  return fmt::format("{}", whole);
}

std::string yaml(double number) {
  if (std::isnan(number)) return ".nan";
  if (std::isinf(number)) return number < 0 ? "-.inf" : ".inf";
  std::string text = fmt::format("{}", number);
  // To YAML 1.1 a number without a point is whole, and 1e-05 is text.
  if (text.find('.') == std::string::npos) text.insert(std::min(text.find('e'), text.size()), ".0");
  return text;
}

}  // namespace

std::string to_yaml(const TrackedConfig& config) {
  std::string text;
  for (const auto& [name, value] : config) {
    text += fmt::format("{}: {}\n", yaml(name), std::visit([](const auto& one) { return yaml(one); }, value));
  }
  return text;
}

void TensorBoardTracker::start(const std::string& project, const TrackedConfig& config) {
  folder_ = logging_dir_ / project;
  file("");
  if (!config.empty()) store_config(config);
}

void TensorBoardTracker::store_config(const TrackedConfig& config) const {
  const double now = seconds_since_1970();
  const std::filesystem::path folder = folder_ / fmt::format("{:.6f}", now);
  EventFile events(folder);
  for (const std::string& event : hyper_parameter_events(now, config)) events.append(event);
  replace_file(folder / "hparams.yml", to_yaml(config));
}

EventFile& TensorBoardTracker::file(const std::string& folder) {
  return files_.try_emplace(folder, folder_ / folder).first->second;
}

void TensorBoardTracker::log(const TrackedValues& values, std::optional<std::int64_t> step) {
  const EventTime time{.seconds = seconds_since_1970(), .step = step};
  for (const auto& [name, value] : values) {
    if (const auto* group = std::get_if<TrackedGroup>(&value)) {
      std::string chart = name;
      std::ranges::replace(chart, '/', '_');
      for (const auto& [run, number] : *group)
        file(chart + "_" + run).append(value_event(time, name, number));
    } else {
      file("").append(value_event(time, name, std::get<TrackedScalar>(value)));
    }
  }
}

}  // namespace acc
