// SPDX-License-Identifier: Apache-2.0
#include "acc/report/goodput.hpp"

#include <algorithm>
#include <map>
#include <optional>

namespace acc::launcher {
namespace {

using Spent = std::array<double, kSections.size()>;

double time_in(const Spent& spent, Section section) {
  return spent[static_cast<std::size_t>(section)];
}

/// The steps of a process that does not count them over restarts. Where there are fewer than before, another
/// training has begun.
struct ProcessSteps {
  std::int64_t last = 0;
  std::int64_t sum = 0;

  void add(std::int64_t steps) {
    sum += steps >= last ? steps - last : steps;
    last = steps;
  }
};

/// The highest step of each rank before an attempt.
using Reached = std::map<int, std::int64_t>;

// How the time of one rank in one attempt was spent.
class RankTime {
 public:
  RankTime(const AttemptRecord& attempt, std::int64_t reached, const std::vector<TimeSpan>& standstills)
      : attempt_(attempt), reached_(reached), standstills_(standstills) {}

  void add(const RankSample& sample) {
    if (!sample.steps) return;
    if (first_ended_) {
      const Spent spent = spent_between(*last_, sample);
      for (std::size_t i = 0; i < spent_.size(); ++i) spent_[i] += spent[i];
      if (sample.step_ended > step_ended_) add_steps(*last_, sample);
    } else if (sample.step_ended > 0) {
      first_ended_ = std::clamp(sample.step_ended, attempt_.time.begin, attempt_.time.end);
    }
    // Another training of the rank, or another program, begins without one.
    step_ended_ = std::max(step_ended_, sample.step_ended);
    last_ = sample;
  }

  // The parts add up to the length of the attempt.
  TimeShares finish(bool is_first, bool is_last) {
    double TimeShares::* head = is_first ? &TimeShares::starting : &TimeShares::restarting;
    double TimeShares::* tail = is_last ? &TimeShares::ending : &TimeShares::restarting;
    if (!first_ended_) {
      shares_.*head += attempt_.time.length();
      return shares_;
    }
    shares_.*head += *first_ended_ - attempt_.time.begin;
    const double end = std::clamp(step_ended_, *first_ended_, attempt_.time.end);
    add_lost({end, attempt_.time.end}, tail);
    return shares_;
  }

 private:
  void add_steps(const RankSample& previous, const RankSample& sample) {
    const TimeSpan span = {std::clamp(step_ended_, attempt_.time.begin, attempt_.time.end),
                           std::clamp(sample.step_ended, attempt_.time.begin, attempt_.time.end)};
    const std::int64_t begin = *previous.steps;
    const std::int64_t steps = *sample.steps - begin;
    const double work = add_lost(span, nullptr);
    // After another training of this process has begun there may be fewer; none of its steps are repeated.
    double repeated_part = 0;
    if (sample.counts_over_restarts && steps > 0)
      repeated_part = static_cast<double>(std::clamp<std::int64_t>(reached_ - begin, 0, steps)) /
                      static_cast<double>(steps);
    shares_.counted += work * (1 - repeated_part);
    shares_.repeated += work * repeated_part;
  }

  // Gives the sections that are no work, and standstills, their part of the time, and `remainder` what is
  // left. Returns that.
  double add_lost(const TimeSpan& span, double TimeShares::* remainder) {
    double remaining = span.length();
    const auto take = [&](double& share, double time) {
      const double part = std::min(remaining, time);
      share += part;
      remaining -= part;
    };
    for (const TimeSpan& standstill : standstills_) take(shares_.waiting, overlap(span, standstill));
    take(shares_.data, time_in(spent_, Section::data));
    take(shares_.saving, time_in(spent_, Section::saving));
    take(shares_.evaluation, time_in(spent_, Section::evaluation));
    spent_ = {};
    if (remainder != nullptr) shares_.*remainder += remaining;
    return remaining;
  }

  const AttemptRecord& attempt_;
  std::int64_t reached_;
  const std::vector<TimeSpan>& standstills_;
  std::optional<RankSample> last_ = {};
  std::optional<double> first_ended_ = {};
  /// When the last step ended; 0: none has.
  double step_ended_ = 0;
  /// In the sections, since the step that ended last.
  Spent spent_ = {};
  TimeShares shares_ = {};
};

void add_shares(TimeShares& sum, const TimeShares& shares, double factor) {
  for (double TimeShares::* share :
       {&TimeShares::counted, &TimeShares::repeated, &TimeShares::data, &TimeShares::saving,
        &TimeShares::evaluation, &TimeShares::waiting, &TimeShares::starting, &TimeShares::restarting,
        &TimeShares::ending, &TimeShares::unknown})
    sum.*share += factor * shares.*share;
}

bool says_steps(const std::vector<RankSample>& samples) {
  return std::ranges::any_of(samples, [](const RankSample& sample) { return sample.steps.has_value(); });
}

bool says_steps(const AttemptRecord& attempt) {
  return std::ranges::any_of(attempt.ranks, [](const auto& rank) { return says_steps(rank.second); });
}

class Accounts {
 public:
  explicit Accounts(const JobHistory& history) : history_(history) {}

  Goodput run() {
    is_followed_ =
        std::ranges::any_of(history_.attempts, [](const auto& attempt) { return says_steps(attempt); });
    double end = history_.time.begin;
    for (const AttemptRecord& attempt : history_.attempts) {
      const bool is_first = &attempt == &history_.attempts.front();
      (is_first ? goodput_.shares.waiting : goodput_.shares.restarting) +=
          std::max(0.0, attempt.time.begin - end);
      add_attempt(attempt);
      end = std::max(end, attempt.time.end);
    }
    goodput_.shares.ending += std::max(0.0, history_.time.end - end);
    for (const auto& [rank, step] : reached_) goodput_.steps = std::max(goodput_.steps, step);
    goodput_.is_highest_step = goodput_.steps > 0 && process_steps_ == 0;
    goodput_.steps += process_steps_;
    return goodput_;
  }

 private:
  void add_attempt(const AttemptRecord& attempt) {
    const bool is_first = &attempt == &history_.attempts.front();
    const bool is_last = &attempt == &history_.attempts.back();
    TimeShares sum;
    double ranks = 0;
    std::int64_t steps = 0;
    Reached reached = reached_;
    for (const auto& [rank, samples] : attempt.ranks) {
      if (!says_steps(samples)) continue;
      RankTime time(attempt, reached_of(rank), history_.standstills);
      ProcessSteps process;
      for (const RankSample& sample : samples) {
        time.add(sample);
        note_steps(rank, sample, is_first, reached, process);
      }
      steps = std::max(steps, process.sum);
      add_shares(sum, time.finish(is_first, is_last), 1);
      ++ranks;
    }
    reached_ = std::move(reached);
    process_steps_ += steps;
    if (ranks > 0) return add_shares(goodput_.shares, sum, 1 / ranks);
    double& share = !is_followed_ ? goodput_.shares.unknown
                    : is_first    ? goodput_.shares.starting
                    : is_last     ? goodput_.shares.ending
                                  : goodput_.shares.restarting;
    share += attempt.time.length();
  }

  void note_steps(int rank, const RankSample& sample, bool is_first, Reached& reached,
                  ProcessSteps& process) {
    if (!sample.steps) return;
    if (sample.counts_over_restarts) {
      reached[rank] = std::max(reached[rank], *sample.steps);
    } else {
      process.add(*sample.steps);
      if (*sample.steps > 0) goodput_.repeated_is_known = goodput_.repeated_is_known && is_first;
    }
  }

  // A rank that is new has repeated what others had ended.
  std::int64_t reached_of(int rank) const {
    const auto entry = reached_.find(rank);
    if (entry != reached_.end()) return entry->second;
    std::int64_t highest = 0;
    for (const auto& [other, step] : reached_) highest = std::max(highest, step);
    return highest;
  }

  const JobHistory& history_;
  Goodput goodput_ = {};
  bool is_followed_ = false;
  Reached reached_ = {};
  std::int64_t process_steps_ = 0;
};

}  // namespace

Goodput goodput_of(const JobHistory& history) {
  return Accounts(history).run();
}

}  // namespace acc::launcher
