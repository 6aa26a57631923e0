// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "acc/base/progress_page.hpp"

namespace acc::launcher {

/// What is known of a rank at one moment.
struct RankSample {
  double time = 0;
  /// Absent where it does not say how far it is; then only CPU and memory are known.
  std::optional<std::int64_t> steps = {};
  bool counts_over_restarts = false;
  /// When the last step ended; 0: none has.
  double step_ended = 0;
  /// The time in each section since the worker began, in the order of kSections.
  std::array<float, kSections.size()> spent = {};
  /// May be NaN or infinite.
  std::optional<float> loss = {};
  std::optional<double> cpu_seconds = {};
  std::optional<double> memory_bytes = {};
};

/// The time in each section between two samples of a rank. Where it had more before, another program of the
/// rank has begun since, whose time counts from its start.
std::array<double, kSections.size()> spent_between(const RankSample& previous, const RankSample& sample);

/// What all processes use of a GPU at one moment. Absent: not known.
struct GpuSample {
  int index = 0;
  /// Empty: not known.
  std::string uuid = {};
  /// Some rank has a process on it.
  bool has_ranks = false;
  double time = 0;
  std::optional<double> percent = {};
  std::optional<double> memory_bytes = {};
  std::optional<double> watts = {};
  /// Since the driver was loaded.
  std::optional<double> joules = {};
};

/// A line of an event log (configs/events.schema.json). Times are in seconds of Unix.
struct EventLine {
  std::string event = {};
  double time = 0;
  std::string run_id = {};
  std::string host = {};
  int node_rank = 0;
  int attempt = 0;
  /// Of `progress`: the samples by their ranks. Of `gpu_use`: those of the GPUs. Of other events: all fields.
  std::vector<std::pair<int, RankSample>> samples = {};
  std::vector<GpuSample> gpus = {};
  nlohmann::json fields = {};

  /// A node of the job. Several nodes may be on one host.
  std::string node() const { return host + '/' + std::to_string(node_rank); }
};

/// The lines of logs, and what was passed over.
struct EventLines {
  std::vector<EventLine> lines = {};
  /// `a.jsonl:7: is not an event`; at most a few for each file.
  std::vector<std::string> notes = {};
};

/// nullopt: it is not an event of schema 1.
std::optional<EventLine> parse_event_line(std::string_view text);

/// Adds the lines of a log. What is not an event, as the last line of a log that was cut, is passed over and
/// noted with `name` and its number. So is that a machine's clock was set back, after which times go on by
/// the clock as it was. Throws nothing.
void add_event_lines(EventLines& events, std::string_view text, const std::string& name);

/// The same for files. Throws Error{system} for one that cannot be read, or not to its end.
EventLines read_event_logs(const std::vector<std::filesystem::path>& files);

/// As by a clock that is `seconds` behind.
void move_back(EventLine& line, double seconds);

/// No training has more: a log that says so is wrong, and would take the memory.
inline constexpr std::int64_t kMaxRanks = 1 << 20;

/// The value of a field if it is of that type and in its range; else nullopt.
std::optional<std::int64_t> integer_in(const nlohmann::json& object, const char* field);
std::optional<double> number_in(const nlohmann::json& object, const char* field);
std::string text_in(const nlohmann::json& object, const char* field);

/// The array in a field; an empty one if there is none.
const nlohmann::json& array_in(const nlohmann::json& object, const std::string& field);

/// The same for a value.
std::optional<std::int64_t> integer_of(const nlohmann::json& value);
std::optional<double> number_of(const nlohmann::json& value);

}  // namespace acc::launcher
