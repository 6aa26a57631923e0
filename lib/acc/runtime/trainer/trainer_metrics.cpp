// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/trainer/trainer_metrics.hpp"

#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <utility>

namespace acc::detail {
namespace {

double rounded(double value, int digits) {
  const double scale = std::pow(10, digits);
  return std::round(value * scale) / scale;
}

}  // namespace

void add_speed(Metrics& metrics, const std::string& prefix, double seconds, double samples, double steps) {
  metrics[prefix + "_runtime"] = rounded(seconds, 4);
  if (seconds <= 0) return;
  metrics[prefix + "_samples_per_second"] = rounded(samples / seconds, 3);
  metrics[prefix + "_steps_per_second"] = rounded(steps / seconds, 3);
}

void add_token_speed(Metrics& metrics, double seconds, double tokens) {
  metrics["train_runtime"] = rounded(seconds, 4);
  if (seconds > 0) metrics["train_tokens_per_second"] = rounded(tokens / seconds, 3);
}

TrackedValues tracked_values(const Metrics& metrics) {
  TrackedValues values;
  for (const auto& [name, value] : metrics) {
    std::string tracked_name = "train/" + name;
    for (const std::string prefix : {"eval", "test", "train"})
      if (name.starts_with(prefix + "_")) tracked_name = prefix + "/" + name.substr(prefix.size() + 1);
    values.emplace(std::move(tracked_name), TrackedScalar(value));
  }
  return values;
}

TrackedConfig tracked_config(const TrainingArguments& arguments) {
  TrackedConfig config;
  const nlohmann::json all = nlohmann::json::parse(to_json(arguments));
  for (const auto& [name, value] : all.items()) {
    if (value.is_boolean()) config.emplace(name, value.get<bool>());
    if (value.is_number_integer()) config.emplace(name, value.get<std::int64_t>());
    if (value.is_number_float()) config.emplace(name, value.get<double>());
    if (value.is_string()) config.emplace(name, value.get<std::string>());
  }
  return config;
}

}  // namespace acc::detail
