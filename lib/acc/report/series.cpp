// SPDX-License-Identifier: Apache-2.0
#include "acc/report/series.hpp"

#include <algorithm>
#include <functional>
#include <limits>
#include <optional>

namespace acc::launcher {
namespace {

// Gathers values by their times.
class SeriesColumns {
 public:
  SeriesColumns(const TimeSpan& time, std::size_t points) : time_(time), columns_(points) {}

  void add(double moment, double value) {
    const double part = time_.length() > 0 ? (moment - time_.begin) / time_.length() : 0;
    const auto last = static_cast<double>(columns_.size() - 1);
    Column& column = columns_[static_cast<std::size_t>(std::clamp(part * last, 0.0, last))];
    column.sum += value;
    column.times += moment;
    column.highest = std::max(column.highest, value);
    ++column.count;
  }

  Series series() const {
    Series points;
    for (const Column& column : columns_) {
      if (column.count > 0)
        points.push_back({column.times / column.count, column.sum / column.count, column.highest});
    }
    return points;
  }

 private:
  struct Column {
    double sum = 0;
    double times = 0;
    double highest = std::numeric_limits<double>::lowest();
    double count = 0;
  };

  TimeSpan time_;
  std::vector<Column> columns_;
};

using SampleValue =
    std::function<std::optional<double>(const RankSample& previous, const RankSample& sample)>;

// `previous`: the last sample that had a value; at first the start of the attempt.
Series series_of(const JobHistory& history, std::size_t points, const SampleValue& value_of) {
  SeriesColumns columns(history.time, points);
  for (const AttemptRecord& attempt : history.attempts) {
    for (const auto& [rank, samples] : attempt.ranks) {
      RankSample previous = {.time = attempt.time.begin, .cpu_seconds = 0};
      for (const RankSample& sample : samples) {
        const auto value = value_of(previous, sample);
        if (!value) continue;
        columns.add(sample.time, *value);
        previous = sample;
      }
    }
  }
  return columns.series();
}

Series gpu_series(const JobHistory& history, std::size_t points, std::optional<double> GpuSample::* value) {
  SeriesColumns columns(history.time, points);
  for (const auto& [gpu, samples] : history.gpus) {
    for (const GpuSample& sample : samples) {
      if (sample.*value) columns.add(sample.time, *(sample.*value));
    }
  }
  return columns.series();
}

}  // namespace

Series cpu_series(const JobHistory& history, std::size_t points) {
  return series_of(history, points,
                   [](const RankSample& previous, const RankSample& sample) -> std::optional<double> {
                     const double elapsed = sample.time - previous.time;
                     if (!sample.cpu_seconds || !previous.cpu_seconds || elapsed <= 0) return std::nullopt;
                     return std::max(0.0, (*sample.cpu_seconds - *previous.cpu_seconds) / elapsed);
                   });
}

Series memory_series(const JobHistory& history, std::size_t points) {
  return series_of(history, points,
                   [](const RankSample&, const RankSample& sample) { return sample.memory_bytes; });
}

Series loss_series(const JobHistory& history, std::size_t points) {
  return series_of(history, points, [](const RankSample&, const RankSample& sample) {
    return sample.loss ? std::optional(static_cast<double>(*sample.loss)) : std::nullopt;
  });
}

Series gpu_use_series(const JobHistory& history, std::size_t points) {
  return gpu_series(history, points, &GpuSample::percent);
}

Series gpu_memory_series(const JobHistory& history, std::size_t points) {
  return gpu_series(history, points, &GpuSample::memory_bytes);
}

Series gpu_power_series(const JobHistory& history, std::size_t points) {
  return gpu_series(history, points, &GpuSample::watts);
}

}  // namespace acc::launcher
