// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/tracking/file_trackers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "acc/base/error.hpp"
#include "acc/base/files.hpp"
#include "acc/runtime/tracking/appended_file.hpp"
#include "acc/runtime/tracking/event_file.hpp"
#include "acc/runtime/tracking/media_events.hpp"

namespace acc {
namespace {

// Keeps the order of an object's members.
using Json = nlohmann::ordered_json;

Json json_of(const TrackedScalar& scalar) {
  return std::visit([](const auto& value) { return Json(value); }, scalar);
}

Json json_of(const TrackedGroup& group) {
  Json object = Json::object();
  for (const auto& [name, number] : group) object[name] = number;
  return object;
}

std::string line(const Json& object) {
  // Replaces bytes that are not UTF-8: they must not end a training.
  return object.dump(-1, ' ', false, Json::error_handler_t::replace) + '\n';
}

}  // namespace

void JsonLinesTracker::start(const std::string& project, const TrackedConfig& config) {
  file_.emplace(logging_dir_ / (project + ".jsonl"));
  file_->cut_unfinished_line();
  Json object{{"project", project}, {"time", detail::seconds_since_1970()}, {"config", Json::object()}};
  for (const auto& [name, value] : config) object["config"][name] = json_of(value);
  file_->append(line(object));
}

void JsonLinesTracker::log(const TrackedValues& values, std::optional<std::int64_t> step) {
  Json object = Json::object();
  if (step) object["step"] = *step;
  object["time"] = detail::seconds_since_1970();
  object["values"] = Json::object();
  for (const auto& [name, value] : values)
    object["values"][name] = std::visit([](const auto& one) { return json_of(one); }, value);
  file_->append(line(object));
}

namespace {

// A JSON string is a valid YAML string.
std::string yaml(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string yaml(bool truth) {
  return truth ? "true" : "false";
}

std::string yaml(std::int64_t whole) {
  return fmt::format("{}", whole);
}

std::string yaml(double number) {
  if (std::isnan(number)) return ".nan";
  if (std::isinf(number)) return number < 0 ? "-.inf" : ".inf";
  std::string text = fmt::format("{}", number);
  // Without a point YAML 1.1 would read 1 as an integer and 1e-05 as text.
  if (text.find('.') == std::string::npos) text.insert(std::min(text.find('e'), text.size()), ".0");
  return text;
}

}  // namespace

namespace detail {

std::string to_yaml(const TrackedConfig& config) {
  std::string text;
  for (const auto& [name, value] : config) {
    text += fmt::format("{}: {}\n", yaml(name), std::visit([](const auto& one) { return yaml(one); }, value));
  }
  return text;
}

}  // namespace detail

namespace {

// As in RFC 4180, quotes a cell that contains a separator, a newline or a quote, and doubles quotes in it.
std::string csv_cell(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

std::string csv_text(const TrackedScalar& scalar) {
  if (const auto* text = std::get_if<std::string>(&scalar)) return *text;
  if (const auto* truth = std::get_if<bool>(&scalar)) return *truth ? "true" : "false";
  if (const auto* whole = std::get_if<std::int64_t>(&scalar)) return fmt::format("{}", *whole);
  return fmt::format("{}", std::get<double>(scalar));
}

std::string csv_line(const std::vector<std::string>& cells) {
  std::string line;
  for (std::size_t i = 0; i < cells.size(); ++i) line += (i == 0 ? "" : ",") + csv_cell(cells[i]);
  return line + "\n";
}

std::vector<std::string> split_csv_line(std::string_view line) {
  std::vector<std::string> cells(1);
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '"' && quoted && line.substr(i + 1).starts_with('"')) {
      cells.back() += line[++i];
    } else if (line[i] == '"') {
      quoted = !quoted;
    } else if (line[i] == ',' && !quoted) {
      cells.emplace_back();
    } else {
      cells.back() += line[i];
    }
  }
  return cells;
}

// Each row is one line: newlines in names and texts become spaces. The first columns are the tracker's own.
std::map<std::string, std::string> csv_cells(const TrackedValues& values) {
  std::map<std::string, std::string> cells;
  const auto add = [&](std::string name, std::string text) {
    for (std::string* part : {&name, &text})
      std::ranges::replace_if(*part, [](char c) { return c == '\n' || c == '\r'; }, ' ');
    if (name == "step" || name == "time") name = "values/" + name;
    cells[name] = std::move(text);
  };
  for (const auto& [name, value] : values) {
    if (const auto* group = std::get_if<TrackedGroup>(&value)) {
      for (const auto& [part, number] : *group) add(name + "/" + part, csv_text(number));
    } else {
      add(name, csv_text(std::get<TrackedScalar>(value)));
    }
  }
  return cells;
}

}  // namespace

void CsvTracker::start(const std::string& project, const TrackedConfig& config) {
  path_ = absolute_path(logging_dir_ / (project + ".csv"));
  static_cast<void>(detail::AppendedFile(path_));  // makes the folder, whose lock is asked for
  {
    const Descriptor lock = lock_folder_of(path_);
    open_table();
  }
  if (!config.empty()) replace_file(logging_dir_ / (project + ".hparams.yml"), detail::to_yaml(config));
}

// The folder is locked, also below.
void CsvTracker::open_table() {
  detail::AppendedFile file(path_);
  std::ifstream stream(path_);
  std::string header;
  std::getline(stream, header);
  const bool has_header = !stream.eof();
  if (header.ends_with('\r')) header.pop_back();
  std::vector<std::string> columns = {"step", "time"};
  if (has_header || !header.empty()) columns = split_csv_line(header);
  if (columns.size() < 2 || columns[0] != "step" || columns[1] != "time")
    throw Error({.kind = ErrorKind::config,
                 .what = "is not a file of this tracker: its first columns are not step and time",
                 .where = path_.string(),
                 .hint = "move the file away, or choose another name for the project"});
  file.cut_unfinished_line();
  if (!has_header) file.append(csv_line(columns));
  file_ = std::move(file);
  columns_ = std::move(columns);
}

// A file of somebody else's ends no training: the rows go where they went.
void CsvTracker::follow_replacement() {
  try {
    open_table();
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::config) throw;
  }
}

void CsvTracker::add_columns(const std::vector<std::string>& names) {
  const std::string text = read_file(path_, std::numeric_limits<std::size_t>::max());
  std::vector<std::string> columns = columns_;
  columns.insert(columns.end(), names.begin(), names.end());
  replace_file(path_, csv_line(columns) + text.substr(text.find('\n') + 1));
  columns_ = std::move(columns);
  file_ = detail::AppendedFile(path_);
}

void CsvTracker::log(const TrackedValues& values, std::optional<std::int64_t> step) {
  std::map<std::string, std::string> cells = csv_cells(values);
  const Descriptor lock = lock_folder_of(path_);
  // Another training of the project may have added a column, for which it replaced the file.
  if (file_->is_replaced()) follow_replacement();
  std::vector<std::string> added;
  for (const auto& [name, text] : cells)
    if (std::ranges::find(columns_, name) == columns_.end()) added.push_back(name);
  if (!added.empty()) add_columns(added);
  cells["step"] = step ? fmt::format("{}", *step) : "";
  cells["time"] = fmt::format("{:.3f}", detail::seconds_since_1970());
  std::vector<std::string> row;
  for (const std::string& column : columns_) row.push_back(cells[column]);
  file_->append(csv_line(row));
}

void TensorBoardTracker::log_images(const TrackedTensors& images, std::optional<std::int64_t> step) {
  const detail::EventTime time{.seconds = detail::seconds_since_1970(), .step = step};
  for (const auto& [name, tensor] : images) file("").append(detail::images_event(time, name, tensor));
}

void TensorBoardTracker::log_histograms(const TrackedTensors& values, std::optional<std::int64_t> step) {
  const detail::EventTime time{.seconds = detail::seconds_since_1970(), .step = step};
  for (const auto& [name, tensor] : values) {
    if (const auto event = detail::histogram_event(time, name, tensor)) file("").append(*event);
  }
}

void TensorBoardTracker::start(const std::string& project, const TrackedConfig& config) {
  folder_ = logging_dir_ / project;
  file("");
  if (!config.empty()) store_config(config);
}

void TensorBoardTracker::store_config(const TrackedConfig& config) const {
  const double now = detail::seconds_since_1970();
  const std::filesystem::path folder = folder_ / fmt::format("{:.6f}", now);
  detail::EventFile events(folder);
  for (const std::string& event : detail::hyper_parameter_events(now, config)) events.append(event);
  replace_file(folder / "hparams.yml", detail::to_yaml(config));
}

detail::EventFile& TensorBoardTracker::file(const std::string& folder) {
  return files_.try_emplace(folder, folder_ / folder).first->second;
}

void TensorBoardTracker::log(const TrackedValues& values, std::optional<std::int64_t> step) {
  const detail::EventTime time{.seconds = detail::seconds_since_1970(), .step = step};
  for (const auto& [name, value] : values) {
    if (const auto* group = std::get_if<TrackedGroup>(&value)) {
      std::string chart = name;
      std::ranges::replace(chart, '/', '_');
      for (const auto& [run, number] : *group)
        file(chart + "_" + run).append(detail::value_event(time, name, number));
    } else {
      file("").append(detail::value_event(time, name, std::get<TrackedScalar>(value)));
    }
  }
}

}  // namespace acc
