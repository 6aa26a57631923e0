// SPDX-License-Identifier: Apache-2.0
#include "exploration/search.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string_view>
#include <utility>

namespace exploration {
namespace {

using Action = Option::Action;

// Signs of the actions in a schedule, in their order.
constexpr std::string_view kSigns = "=>*~!|";

class DepthFirst : public Chooser {
 public:
  explicit DepthFirst(int bound) : bound_(bound) {}

  std::size_t choose(std::span<const Option> options, bool /*forced*/) override {
    const bool is_used_up = used_ == bound_;
    // Then only a fault can be chosen, which is the last option.
    if (next_ == path_.size())
      path_.push_back({.options = is_used_up ? 1 + (is_fault(options.back()) ? 1U : 0U) : options.size()});
    const Choice& choice = path_[next_++];
    const std::size_t chosen = is_used_up && choice.chosen > 0 ? options.size() - 1 : choice.chosen;
    if (chosen > 0 && !is_fault(options[chosen])) ++used_;
    return chosen;
  }

  // Goes on to the next execution; false after the last one.
  bool advance() {
    path_.resize(next_);
    while (!path_.empty() && path_.back().chosen + 1 >= path_.back().options) path_.pop_back();
    if (path_.empty()) return false;
    ++path_.back().chosen;
    next_ = 0;
    used_ = 0;
    return true;
  }

 private:
  struct Choice {
    std::size_t chosen = 0;
    std::size_t options = 1;
  };

  static bool is_fault(const Option& option) {
    return option.action == Action::kill || option.action == Action::stop;
  }

  int bound_;
  int used_ = 0;
  std::size_t next_ = 0;
  std::vector<Choice> path_ = {};
};

// Interrupts a fiber at a point in twenty, and has a fault at one in some hundred.
class Walk : public Chooser {
 public:
  explicit Walk(std::uint64_t seed) : random_(seed) {}

  std::size_t choose(std::span<const Option> options, bool forced) override {
    if (!forced && below(20) != 0) return 0;
    return below(options.size());
  }

 private:
  // std::uniform_int_distribution is not the same everywhere.
  std::size_t below(std::size_t count) { return static_cast<std::size_t>(random_() % count); }

  std::mt19937_64 random_;
};

class Repetition : public Chooser {
 public:
  explicit Repetition(std::vector<Deviation> deviations) : deviations_(std::move(deviations)) {}

  std::size_t choose(std::span<const Option> /*options*/, bool /*forced*/) override { return 0; }
  const Deviation* planned(const std::string& fiber, int point) override {
    const auto match = std::ranges::find_if(deviations_, [&](const Deviation& deviation) {
      return deviation.point == point && deviation.fiber == fiber;
    });
    return match == deviations_.end() ? nullptr : &*match;
  }

 private:
  std::vector<Deviation> deviations_;
};

Outcome repeat(const Execute& execute, const std::vector<Deviation>& deviations, bool traced) {
  Repetition repetition(deviations);
  return execute(repetition, traced);
}

// Leaves out what the failure does not need, half of the rest at first.
std::vector<Deviation> shortened(const Execute& execute, std::vector<Deviation> deviations) {
  for (std::size_t width = std::max<std::size_t>(1, deviations.size() / 2);; width /= 2) {
    for (std::size_t at = 0; at < deviations.size();) {
      std::vector<Deviation> fewer = deviations;
      const auto begin = fewer.begin() + static_cast<std::ptrdiff_t>(at);
      fewer.erase(begin, begin + static_cast<std::ptrdiff_t>(std::min(width, fewer.size() - at)));
      Outcome outcome = repeat(execute, fewer, /*traced=*/false);
      if (outcome.failure.empty() || outcome.deviations.size() >= deviations.size()) {
        at += width;
      } else {
        deviations = std::move(outcome.deviations);
      }
    }
    if (width <= 1) return deviations;
  }
}

void describe(Report& report, const Execute& execute, const Outcome& outcome) {
  const std::vector<Deviation> deviations = shortened(execute, outcome.deviations);
  Outcome repeated = repeat(execute, deviations, /*traced=*/true);
  report.failure = std::move(repeated.failure);
  report.schedule = to_text(deviations);
  report.trace = std::move(repeated.trace);
}

Deviation deviation_of(const std::string& word) {
  Deviation deviation;
  const std::size_t at = word.find('@');
  const std::size_t sign = word.find_first_of(kSigns.substr(1));
  try {
    deviation.fiber = word.substr(0, at);
    deviation.point = std::stoi(word.substr(at + 1, sign - at - 1));
    deviation.action = static_cast<Action>(kSigns.find(word.at(sign)));
  } catch (const std::exception&) {
    throw std::invalid_argument(fmt::format("'{}' is not a part of a schedule, such as 0@12>1", word));
  }
  deviation.next = word.substr(sign + 1);
  if (deviation.next.empty()) deviation.next = deviation.fiber;
  return deviation;
}

}  // namespace

Report search(const Execute& execute, int bound, std::uint64_t max_executions) {
  Report report;
  DepthFirst choices(bound);
  do {
    const Outcome outcome = execute(choices, /*traced=*/false);
    ++report.executions;
    if (!outcome.failure.empty()) {
      describe(report, execute, outcome);
      return report;
    }
    report.complete = !choices.advance();
  } while (!report.complete && report.executions < max_executions);
  return report;
}

Report walk(const Execute& execute, std::uint64_t first_seed, std::uint64_t count) {
  Report report;
  for (; report.executions < count; ++report.executions) {
    Walk choices(first_seed + report.executions);
    const Outcome outcome = execute(choices, /*traced=*/false);
    if (outcome.failure.empty()) continue;
    report.seed = first_seed + report.executions++;
    describe(report, execute, outcome);
    break;
  }
  return report;
}

Outcome repeat(const Execute& execute, const std::string& schedule) {
  std::vector<Deviation> deviations;
  std::istringstream words(schedule);
  for (std::string word; words >> word;) deviations.push_back(deviation_of(word));
  return repeat(execute, deviations, /*traced=*/true);
}

std::string to_text(const std::vector<Deviation>& deviations) {
  std::string text;
  for (const Deviation& deviation : deviations) {
    text += fmt::format("{}{}@{}{}{}", text.empty() ? "" : " ", deviation.fiber, deviation.point,
                        kSigns[static_cast<std::size_t>(deviation.action)],
                        deviation.next == deviation.fiber ? "" : deviation.next);
  }
  return text;
}

}  // namespace exploration
