// SPDX-License-Identifier: Apache-2.0
#include "acc/control/step_history.hpp"

#include "acc/control/json_fields.hpp"

namespace acc::launcher {
namespace {

using nlohmann::json;
using Seconds = std::chrono::duration<double>;

json sample_rows(const std::vector<StepHistory::Sample>& samples) {
  json rows = json::array();
  for (const StepHistory::Sample& sample : samples)
    rows.push_back({sample.age.count(), sample.steps, sample.data.count(), sample.communication.count(),
                    sample.since_step.count(), sample.process});
  return rows;
}

std::vector<StepHistory::Sample> samples_in(const json& rows) {
  std::vector<StepHistory::Sample> samples;
  samples.reserve(rows.size());
  for (const json& row : rows)
    samples.push_back({.age = Seconds(row.at(0).get<double>()),
                       .steps = WholeNumber(row.at(1)),
                       .data = Seconds(row.at(2).get<double>()),
                       .communication = Seconds(row.at(3).get<double>()),
                       .since_step = Seconds(row.at(4).get<double>()),
                       .process = WholeNumber(row.at(5))});
  return samples;
}

}  // namespace

json to_json(const StepHistory& history) {
  return {{"seconds", sample_rows(history.seconds)}, {"minutes", sample_rows(history.minutes)}};
}

StepHistory step_history_from_json(const json& in) {
  return {.seconds = samples_in(in.at("seconds")), .minutes = samples_in(in.at("minutes"))};
}

}  // namespace acc::launcher
