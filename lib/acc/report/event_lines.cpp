// SPDX-License-Identifier: Apache-2.0
#include "acc/report/event_lines.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <fstream>
#include <limits>
#include <map>

#include "acc/base/files.hpp"
#include "acc/base/json_nesting.hpp"
#include "acc/base/json_number.hpp"

namespace acc::launcher {
namespace {

using nlohmann::json;

constexpr int kMaxNotes = 3;
// Lines of several nodes on one machine may be in another order than their times by less.
constexpr double kMinSetBack = 1;
// In seconds; less is how exactly the time in a section is known.
constexpr double kMinProgramDecrease = 1;
// Beyond are no clocks, and doubles of seconds lose their microseconds.
constexpr double kMaxTime = 1e11;
// Their sums are numbers, too.
constexpr std::int64_t kMaxSteps = 1'000'000'000'000'000;

const json& field_of(const json& object, const char* field) {
  static const json kNull;
  const auto value = object.find(field);
  return value == object.end() ? kNull : *value;
}

const json& at(const json& array, std::size_t index) {
  static const json kNull;
  return index < array.size() ? array[index] : kNull;
}

// One that is too large for a float is infinite: trainings compute in floats or less.
std::optional<float> loss_of(const json& value) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  if (value == "nan") return std::numeric_limits<float>::quiet_NaN();
  if (value == "inf") return kInfinity;
  if (value == "-inf") return -kInfinity;
  const auto loss = number_of(value);
  if (!loss) return std::nullopt;
  if (std::abs(*loss) > std::numeric_limits<float>::max()) return *loss > 0 ? kInfinity : -kInfinity;
  return static_cast<float>(*loss);
}

std::array<float, kSections.size()> spent_in(const json& fields, std::size_t i) {
  std::array<float, kSections.size()> spent = {};
  const json& columns = field_of(fields, "spent_seconds");
  for (std::size_t section = 0; section < spent.size() && columns.is_object(); ++section) {
    const json& column = array_in(columns, std::string(name_of(kSections[section])));
    spent[section] = static_cast<float>(std::clamp(number_of(at(column, i)).value_or(0), 0.0, kMaxTime));
  }
  return spent;
}

// Of the rank in row `i` of the table.
RankSample sample_of(const json& fields, double time, std::size_t i) {
  const auto value = [&](const char* field) -> const json& { return at(array_in(fields, field), i); };
  RankSample sample = {.time = time,
                       .cpu_seconds = number_of(value("cpu_seconds")),
                       .memory_bytes = number_of(value("memory_bytes"))};
  const auto steps = integer_of(value("steps"));
  if (!steps || *steps < 0 || *steps > kMaxSteps) return sample;
  sample.steps = steps;
  sample.counts_over_restarts = value("counts_over_restarts") == true;
  if (const auto since = number_of(value("since_step_seconds"))) sample.step_ended = time - *since;
  sample.loss = loss_of(value("loss"));
  sample.spent = spent_in(fields, i);
  return sample;
}

std::vector<std::pair<int, RankSample>> samples_in(const json& fields, double time) {
  std::vector<std::pair<int, RankSample>> samples;
  const json& ranks = array_in(fields, "ranks");
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const auto rank = integer_of(ranks[i]);
    if (rank && *rank >= 0 && *rank < kMaxRanks)
      samples.emplace_back(static_cast<int>(*rank), sample_of(fields, time, i));
  }
  return samples;
}

// No GPU has or draws more.
constexpr double kMaxGpuBytes = 1e15;
constexpr double kMaxWatts = 1e5;
constexpr double kMaxJoules = 1e14;
constexpr std::int64_t kMaxGpus = 4096;

std::vector<GpuSample> gpus_in(const json& fields, double time) {
  const auto column = [&](const char* field, std::size_t i) -> const json& {
    return at(array_in(fields, field), i);
  };
  const auto value = [&](const char* field, std::size_t i, double max) {
    const auto number = number_of(column(field, i));
    return number && *number >= 0 && *number <= max ? number : std::nullopt;
  };
  std::vector<GpuSample> gpus;
  const json& indices = array_in(fields, "gpus");
  for (std::size_t i = 0; i < indices.size(); ++i) {
    const auto index = integer_of(indices[i]);
    if (!index || *index < 0 || *index >= kMaxGpus) continue;
    const json& uuid = column("uuids", i);
    const json& ranks = column("ranks", i);
    gpus.push_back({.index = static_cast<int>(*index),
                    .uuid = uuid.is_string() ? uuid.get<std::string>() : std::string(),
                    .has_ranks = ranks.is_array() && !ranks.empty(),
                    .time = time,
                    .percent = value("use_percent", i, 100),
                    .memory_bytes = value("memory_bytes", i, kMaxGpuBytes),
                    .watts = value("watts", i, kMaxWatts),
                    .joules = value("joules", i, kMaxJoules)});
  }
  return gpus;
}

// Notes the first lines that are no events, then their number.
class LineReader {
 public:
  LineReader(EventLines& events, std::string name) : events_(events), name_(std::move(name)) {}

  void add(std::string_view text) {
    ++number_;
    if (text.find_first_not_of(" \t\r") == std::string_view::npos) return;
    if (auto line = parse_event_line(text)) {
      follow_clock(*line);
      events_.lines.push_back(std::move(*line));
    } else if (++refused_ <= kMaxNotes) {
      events_.notes.push_back(fmt::format("{}:{}: is not an event; passed over", name_, number_));
    }
  }

  void finish() const {
    if (refused_ > kMaxNotes)
      events_.notes.push_back(fmt::format("{}: {} more lines are not events", name_, refused_ - kMaxNotes));
  }

 private:
  /// The clock of a machine as far as its log was read.
  struct Clock {
    double last = 0;
    /// By how much it was set back so far.
    double set_back = 0;
  };

  // A log is in the order of what happened, whatever the clock of its machine was set to meanwhile.
  void follow_clock(EventLine& line) {
    Clock& clock = clocks_[{line.run_id, line.host}];
    move_back(line, -clock.set_back);
    if (const double back = clock.last - line.time; back >= kMinSetBack) {
      clock.set_back += back;
      move_back(line, -back);
      events_.notes.push_back(
          fmt::format("{}:{}: the clock of {} was set back by {:.1f} s or more; times from here on are by "
                      "the old one, and "
                      "may be too early",
                      name_, number_, line.host, back));
    }
    clock.last = std::max(clock.last, line.time);
  }

  EventLines& events_;
  std::string name_;
  std::map<std::pair<std::string, std::string>, Clock> clocks_ = {};
  int number_ = 0;
  int refused_ = 0;
};

}  // namespace

std::array<double, kSections.size()> spent_between(const RankSample& previous, const RankSample& sample) {
  std::array<double, kSections.size()> spent = {};
  bool is_other_program = false;
  for (std::size_t i = 0; i < spent.size(); ++i) {
    const double difference = static_cast<double>(sample.spent[i]) - static_cast<double>(previous.spent[i]);
    is_other_program = is_other_program || difference < -kMinProgramDecrease;
    spent[i] = std::max(0.0, difference);
  }
  if (is_other_program) std::ranges::copy(sample.spent, spent.begin());
  return spent;
}

std::optional<std::int64_t> integer_of(const json& value) {
  return whole_number<std::int64_t>(value);
}

std::optional<double> number_of(const json& value) {
  if (!value.is_number()) return std::nullopt;
  const auto number = value.get<double>();
  return std::isfinite(number) ? std::optional(number) : std::nullopt;
}

std::optional<std::int64_t> integer_in(const json& object, const char* field) {
  return integer_of(field_of(object, field));
}

std::optional<double> number_in(const json& object, const char* field) {
  return number_of(field_of(object, field));
}

const json& array_in(const json& object, const std::string& field) {
  static const json kEmpty = json::array();
  const auto value = object.find(field);
  return value != object.end() && value->is_array() ? *value : kEmpty;
}

std::string text_in(const json& object, const char* field) {
  const json& value = field_of(object, field);
  return value.is_string() ? value.get<std::string>() : std::string();
}

std::optional<EventLine> parse_event_line(std::string_view text) {
  if (is_deeply_nested(text)) return std::nullopt;
  json fields = json::parse(text, nullptr, false);
  if (!fields.is_object() || integer_in(fields, "schema") != 1) return std::nullopt;
  const auto time = integer_in(fields, "time_ns");
  EventLine line = {.event = text_in(fields, "event"),
                    .time = static_cast<double>(time.value_or(0)) / 1e9,
                    .run_id = text_in(fields, "run_id"),
                    .host = text_in(fields, "host")};
  if (line.event.empty() || line.time <= 0 || line.time > kMaxTime) return std::nullopt;
  const auto small = [&](const char* field) {
    const std::int64_t number = integer_in(fields, field).value_or(0);
    return number >= 0 && number <= std::numeric_limits<int>::max() ? static_cast<int>(number) : 0;
  };
  line.node_rank = small("node_rank");
  line.attempt = small("attempt");
  if (line.event == "progress") {
    line.samples = samples_in(fields, line.time);
  } else if (line.event == "gpu_use") {
    line.gpus = gpus_in(fields, line.time);
  } else {
    line.fields = std::move(fields);
  }
  return line;
}

void move_back(EventLine& line, double seconds) {
  line.time -= seconds;
  for (auto& [rank, sample] : line.samples) {
    sample.time -= seconds;
    if (sample.step_ended > 0) sample.step_ended -= seconds;
  }
  for (GpuSample& gpu : line.gpus) gpu.time -= seconds;
}

void add_event_lines(EventLines& events, std::string_view text, const std::string& name) {
  LineReader reader(events, name);
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    reader.add(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  reader.finish();
}

EventLines read_event_logs(const std::vector<std::filesystem::path>& files) {
  EventLines lines;
  for (const std::filesystem::path& file : files) {
    std::error_code error;
    if (std::filesystem::is_directory(file, error)) throw_errno(file, "cannot be read", EISDIR);
    std::ifstream in(file);
    if (!in) throw_errno(file, "cannot be read", errno);
    LineReader reader(lines, file.filename().string());
    for (std::string text; std::getline(in, text);) reader.add(text);
    // A log that ends where a disk or a file server fails is not whole.
    if (in.bad()) throw_errno(file, "cannot be read to its end", errno);
    reader.finish();
  }
  return lines;
}

}  // namespace acc::launcher
