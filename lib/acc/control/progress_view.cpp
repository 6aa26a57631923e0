// SPDX-License-Identifier: Apache-2.0
#include "acc/control/progress_view.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "acc/base/printable.hpp"
#include "acc/control/json_fields.hpp"

namespace acc::launcher {
namespace {

using nlohmann::json;
using Seconds = ProgressView::Seconds;

// A page may be written while `now` is taken.
Seconds age(std::chrono::nanoseconds time, std::chrono::nanoseconds now) {
  return std::max(Seconds(now - time), Seconds(0));
}

json seconds_to_json(const std::optional<Seconds>& time) {
  return time ? json(time->count()) : json();
}

std::optional<Seconds> seconds_from_json(const json& in) {
  return in.is_null() ? std::nullopt : std::optional(Seconds(in.get<double>()));
}

std::optional<double> loss_from_json(const json& in) {
  if (in.is_null()) return std::nullopt;
  if (in.is_number()) return in.get<double>();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (in == "inf") return kInfinity;
  return in == "-inf" ? -kInfinity : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace

ProgressView view_of(const Progress& progress, std::chrono::nanoseconds now) {
  ProgressView view{.steps = progress.steps,
                    .samples = progress.samples,
                    .tokens = progress.tokens,
                    .loss = progress.loss,
                    .section = std::string(name_of(progress.section)),
                    .in_section = age(progress.section_began, now),
                    .collective = printable(progress.collective),
                    .collectives = progress.collectives};
  if (progress.step_ended.count() != 0) view.since_step = age(progress.step_ended, now);
  if (progress.step_duration.count() != 0) view.step_time = progress.step_duration;
  if (!view.collective.empty()) view.in_collective = age(progress.collective_began, now);
  for (std::size_t i = 0; i < kSections.size(); ++i) {
    Seconds spent = progress.spent[i];
    if (kSections[i] == progress.section) spent += view.in_section;
    view.spent[std::string(name_of(kSections[i]))] = spent;
  }
  return view;
}

json loss_to_json(const std::optional<double>& loss) {
  if (!loss) return nullptr;
  return std::isfinite(*loss) ? json(*loss) : json(fmt::format("{}", *loss));
}

json to_json(const std::optional<ProgressView>& progress) {
  if (!progress) return nullptr;
  json spent = json::object();
  for (const auto& [section, time] : progress->spent) spent[section] = time.count();
  const bool waits = !progress->collective.empty();
  return {{"steps", progress->steps},
          {"step_seconds", seconds_to_json(progress->step_time)},
          {"since_step_seconds", seconds_to_json(progress->since_step)},
          {"samples", progress->samples},
          {"tokens", progress->tokens},
          {"loss", loss_to_json(progress->loss)},
          {"section", progress->section},
          {"section_seconds", progress->in_section.count()},
          {"collective", waits ? json(progress->collective) : json()},
          {"collective_seconds", waits ? json(progress->in_collective.count()) : json()},
          {"collectives", progress->collectives},
          {"slow_in", progress->slow_in.empty() ? json() : json(progress->slow_in)},
          {"spent_seconds", spent}};
}

std::optional<ProgressView> progress_from_json(const json& in) {
  if (in.is_null()) return std::nullopt;
  ProgressView view{.steps = WholeNumber(in.at("steps")),
                    .step_time = seconds_from_json(in.at("step_seconds")),
                    .since_step = seconds_from_json(in.at("since_step_seconds")),
                    .samples = WholeNumber(in.at("samples")),
                    .tokens = WholeNumber(in.at("tokens")),
                    .loss = loss_from_json(in.at("loss")),
                    .section = in.at("section"),
                    .in_section = Seconds(in.at("section_seconds").get<double>()),
                    .collectives = WholeNumber(in.at("collectives"))};
  if (const json& collective = in.at("collective"); !collective.is_null()) {
    view.collective = collective;
    view.in_collective = Seconds(in.at("collective_seconds").get<double>());
  }
  // The acc that runs the job may be an older one.
  if (const auto slow = in.find("slow_in"); slow != in.end() && !slow->is_null()) view.slow_in = *slow;
  for (const auto& [section, time] : in.at("spent_seconds").items())
    view.spent[section] = Seconds(time.get<double>());
  return view;
}

}  // namespace acc::launcher
