// SPDX-License-Identifier: Apache-2.0
#include "acc/top/rate_curve.hpp"

#include <algorithm>

namespace acc::launcher {
namespace {

using Seconds = std::chrono::duration<double>;

/// What is known of a part of the time.
struct CurvePart {
  double steps = 0;
  double seconds = 0;
};

class Curve {
 public:
  Curve(Seconds span, std::size_t parts) : span_(span), parts_(parts) {}

  // So many steps between two moments, both before now.
  void add(Seconds begin, Seconds end, double steps) {
    const double width = (span_ / static_cast<double>(parts_.size())).count();
    const double duration = (begin - end).count();
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      const double oldest = span_.count() - static_cast<double>(i) * width;
      const double overlap = std::min(begin.count(), oldest) - std::max(end.count(), oldest - width);
      if (overlap <= 0) continue;
      parts_[i].steps += steps * overlap / duration;
      parts_[i].seconds += overlap;
    }
  }

  RateCurve rates() const {
    RateCurve curve;
    for (const CurvePart& part : parts_)
      curve.push_back(part.seconds > 0 ? std::optional(part.steps / part.seconds) : std::nullopt);
    return curve;
  }

 private:
  Seconds span_;
  std::vector<CurvePart> parts_;
};

}  // namespace

RateCurve rate_curve(const std::vector<StepHistory::Sample>& samples, std::chrono::duration<double> span,
                     std::size_t parts) {
  if (parts == 0 || samples.empty()) return RateCurve(parts);
  const auto step_age = [](const StepHistory::Sample& sample) { return sample.age + sample.since_step; };
  Curve curve(span, parts);
  const StepHistory::Sample* previous = &samples.front();
  Seconds last_step = Seconds(0);
  for (const StepHistory::Sample& sample : samples) {
    if (sample.process == previous->process && sample.steps == previous->steps) continue;
    const Seconds step_time = step_age(*previous) - step_age(sample);
    const bool goes_on =
        sample.process == previous->process && sample.steps > previous->steps && step_time.count() > 0;
    if (goes_on)
      curve.add(step_age(*previous), step_age(sample), static_cast<double>(sample.steps - previous->steps));
    last_step = goes_on ? step_time / static_cast<double>(sample.steps - previous->steps) : Seconds(0);
    previous = &sample;
  }
  const Seconds standstill = step_age(*previous) - samples.back().age;
  if (last_step.count() > 0 && standstill > 2 * last_step)
    curve.add(step_age(*previous), samples.back().age, 0);
  return curve.rates();
}

std::optional<double> highest_of(const RateCurve& curve) {
  std::optional<double> highest;
  for (const std::optional<double>& rate : curve) {
    if (rate && (!highest || *rate > *highest)) highest = rate;
  }
  return highest;
}

}  // namespace acc::launcher
