// SPDX-License-Identifier: Apache-2.0
#include "acc/report/heat_map.hpp"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <set>

namespace acc::launcher {
namespace {

// The columns that a span of time touches, each with the part of the span that is in it.
class TimeColumns {
 public:
  TimeColumns(const TimeSpan& time, std::size_t columns)
      : time_(time),
        columns_(columns),
        width_(std::max(time.length(), 1e-9) / static_cast<double>(columns)) {}

  template <class Visit>
  void for_each(const TimeSpan& span, Visit visit) const {
    if (span.length() <= 0) return;
    for (std::size_t column = index(span.begin); column <= index(span.end); ++column) {
      const double begin = time_.begin + static_cast<double>(column) * width_;
      const double common = overlap(span, {begin, begin + width_});
      if (common > 0) visit(column, common / span.length());
    }
  }

 private:
  std::size_t index(double time) const {
    const double column = (time - time_.begin) / width_;
    return static_cast<std::size_t>(std::clamp(column, 0.0, static_cast<double>(columns_ - 1)));
  }

  TimeSpan time_;
  std::size_t columns_;
  double width_;
};

RankGrid empty_grid(const JobHistory& history, const GridSize& size) {
  std::set<int> ranks;
  for (const AttemptRecord& attempt : history.attempts) {
    for (const auto& [rank, samples] : attempt.ranks) ranks.insert(rank);
  }
  RankGrid grid = {.columns = size.columns};
  const std::size_t together = std::max<std::size_t>((ranks.size() + size.max_rows - 1) / size.max_rows, 1);
  std::size_t count = 0;
  for (const int rank : ranks) {
    if (count++ % together == 0) grid.rows.push_back({rank, rank});
    grid.rows.back().last = rank;
  }
  grid.cells.resize(grid.rows.size() * grid.columns);
  return grid;
}

std::size_t row_of(const RankGrid& grid, int rank) {
  const auto next_row = std::ranges::upper_bound(grid.rows, rank, {}, &RankGrid::Row::first);
  return static_cast<std::size_t>(next_row - grid.rows.begin()) - 1;
}

struct StepTime {
  double seconds = 0;
  double steps = 0;
};

void add_steps(std::vector<StepTime>& cells, const TimeColumns& columns,
               const std::vector<RankSample>& samples) {
  const RankSample* last = nullptr;
  for (const RankSample& sample : samples) {
    if (!sample.steps) continue;
    // Another training of the rank, or another program, counts from its start.
    if (sample.step_ended <= 0 || (last != nullptr && *sample.steps < *last->steps)) last = nullptr;
    if (sample.step_ended <= 0) continue;
    if (last != nullptr && *sample.steps > *last->steps) {
      const TimeSpan span = {last->step_ended, sample.step_ended};
      const auto steps = static_cast<double>(*sample.steps) - static_cast<double>(*last->steps);
      columns.for_each(span, [&](std::size_t column, double part) {
        cells[column].seconds += part * span.length();
        cells[column].steps += part * steps;
      });
    }
    if (last == nullptr || *sample.steps > *last->steps) last = &sample;
  }
}

struct SectionTime {
  double seconds = 0;
  double total = 0;
};

void add_section(std::span<SectionTime> cells, const TimeColumns& columns, std::size_t section, double begin,
                 const std::vector<RankSample>& samples) {
  RankSample previous = {.time = begin};
  for (const RankSample& sample : samples) {
    if (!sample.steps) continue;
    const auto spent = spent_between(previous, sample);
    const double total = std::accumulate(spent.begin(), spent.end(), 0.0);
    columns.for_each({previous.time, sample.time}, [&](std::size_t column, double part) {
      cells[column].seconds += part * spent[section];
      cells[column].total += part * total;
    });
    previous = sample;
  }
}

}  // namespace

RankGrid step_time_grid(const JobHistory& history, const GridSize& size) {
  RankGrid grid = empty_grid(history, size);
  const TimeColumns columns(history.time, size.columns);
  for (const AttemptRecord& attempt : history.attempts) {
    for (const auto& [rank, samples] : attempt.ranks) {
      std::vector<StepTime> times(size.columns);
      add_steps(times, columns, samples);
      const std::size_t row = row_of(grid, rank);
      for (std::size_t column = 0; column < size.columns; ++column) {
        if (times[column].steps <= 0) continue;
        std::optional<float>& cell = grid.cells[row * size.columns + column];
        cell = std::max(cell.value_or(0), static_cast<float>(times[column].seconds / times[column].steps));
      }
    }
  }
  return grid;
}

RankGrid section_grid(const JobHistory& history, Section section, const GridSize& size) {
  RankGrid grid = empty_grid(history, size);
  const TimeColumns columns(history.time, size.columns);
  std::vector<SectionTime> times(grid.cells.size());
  for (const AttemptRecord& attempt : history.attempts) {
    for (const auto& [rank, samples] : attempt.ranks)
      add_section(std::span(times).subspan(row_of(grid, rank) * size.columns, size.columns), columns,
                  static_cast<std::size_t>(section), attempt.time.begin, samples);
  }
  for (std::size_t i = 0; i < times.size(); ++i) {
    if (times[i].total > 0) grid.cells[i] = static_cast<float>(times[i].seconds / times[i].total);
  }
  return grid;
}

double median(std::span<const std::optional<float>> cells) {
  std::vector<float> values;
  for (const std::optional<float>& cell : cells) {
    if (cell) values.push_back(*cell);
  }
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return static_cast<double>(*middle);
}

}  // namespace acc::launcher
