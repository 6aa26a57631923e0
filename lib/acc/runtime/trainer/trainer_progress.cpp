// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/trainer/trainer_progress.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "acc/runtime/trainer/training_plan.hpp"

namespace acc::detail {
namespace {

constexpr std::size_t kBarCells = 30;
// Drawing more often would take time without being visible.
constexpr std::chrono::milliseconds kBetweenDrawings{100};

// The title of a column: `F1 Score` for `eval_f1_score`.
std::string title_of(std::string name) {
  if (name.starts_with("eval_")) name.erase(0, 5);
  bool at_start = true;
  for (char& c : name) {
    if (c == '_') c = ' ';
    if (at_start) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    at_start = c == ' ';
  }
  return name;
}

bool is_shown(const std::string& name) {
  return name.starts_with("eval_") && name != "eval_loss" && !name.ends_with("_runtime") &&
         !name.ends_with("_per_second");
}

}  // namespace

std::string banner_of(const TrainingPlan& plan, const TrainingArguments& arguments,
                      std::int64_t num_trainable) {
  std::string text = "***** Running training *****\n";
  const auto line = [&](const char* name, const std::string& value) {
    text += std::string("  ") + name + " = " + value + "\n";
  };
  line("Num examples", with_thousands(plan.num_examples));
  line("Num Epochs", with_thousands(plan.num_train_epochs));
  line("Num update steps per epoch", with_thousands(plan.num_update_steps_per_epoch));
  line("Instantaneous batch size per device", with_thousands(arguments.per_device_train_batch_size));
  line("Total train batch size (w. parallel, distributed & accumulation)",
       with_thousands(plan.total_train_batch_size));
  line("Gradient Accumulation steps", std::to_string(arguments.gradient_accumulation_steps));
  line("Total optimization steps", with_thousands(plan.max_steps));
  line("Number of trainable parameters", with_thousands(num_trainable));
  return text;
}

std::string with_thousands(std::int64_t number) {
  std::string text = std::to_string(number);
  const std::size_t first = number < 0 ? 1 : 0;
  for (std::size_t position = text.size(); position > first + 3;) text.insert(position -= 3, ",");
  return text;
}

std::string clock_time(double seconds) {
  const auto whole = static_cast<long>(std::clamp(seconds, 0.0, 1e15));
  const long hours = whole / 3600;
  const long minutes = whole / 60 % 60;
  if (hours > 0) return fmt::format("{}:{:02}:{:02}", hours, minutes, whole % 60);
  return fmt::format("{:02}:{:02}", minutes, whole % 60);
}

void ProgressCallback::on_train_begin(const Arguments& /*arguments*/, State& state, Control& /*control*/) {
  is_training_ = true;
  started_ = Clock::now();
  first_step_ = state.global_step;
  training_loss_.reset();
  columns_.clear();
  draw_bar(state);
}

void ProgressCallback::on_step_end(const Arguments& /*arguments*/, State& state, Control& /*control*/) {
  draw_bar(state);
}

void ProgressCallback::on_prediction_step(const Arguments& /*arguments*/, State& state, Control& /*control*/,
                                          std::optional<std::size_t> batches) {
  ++predicted_;
  predictions_ = batches;
  draw_bar(state);
}

void ProgressCallback::on_log(const Arguments& arguments, State& state, Control& /*control*/,
                              const Metrics& logs) {
  const auto loss = logs.find("loss");
  if (loss == logs.end()) return;
  training_loss_ = loss->second;
  if (arguments.eval_strategy == IntervalStrategy::no) write_row(arguments, state, {});
}

void ProgressCallback::on_evaluate(const Arguments& arguments, State& state, Control& control,
                                   const Metrics& metrics) {
  predicted_ = 0;
  clear_bar();
  evaluated_.insert(metrics.begin(), metrics.end());
  if (control.should_evaluate) return;  // more evaluation sets follow
  if (is_training_) write_row(arguments, state, evaluated_);
  evaluated_.clear();
}

void ProgressCallback::on_predict(const Arguments& /*arguments*/, State& /*state*/, Control& /*control*/,
                                  const Metrics& /*metrics*/) {
  predicted_ = 0;
  clear_bar();
}

void ProgressCallback::on_train_end(const Arguments& /*arguments*/, State& /*state*/, Control& /*control*/) {
  clear_bar();
  is_training_ = false;
}

void ProgressCallback::draw_bar(const State& state) {
  if (!has_bar_) return;
  const Clock::time_point now = Clock::now();
  const bool is_last = state.global_step == state.max_steps;
  if (is_drawn_ && !is_last && now - drawn_ < kBetweenDrawings) return;
  drawn_ = now;
  std::string line;
  if (is_training_) {
    // A checkpoint may have more steps than the training that goes on from it.
    const double part =
        state.max_steps > 0 ? std::clamp(double(state.global_step) / double(state.max_steps), 0.0, 1.0) : 0;
    const auto full = static_cast<std::size_t>(part * kBarCells);
    const double seconds = std::chrono::duration<double>(now - started_).count();
    const auto steps = static_cast<double>(state.global_step - first_step_);
    const std::string remaining =
        steps > 0 ? clock_time(seconds / steps * double(state.max_steps - state.global_step)) : "?";
    line = fmt::format("{:3}% [", static_cast<int>(part * 100)) + std::string(full, '#') +
           std::string(kBarCells - full, ' ') + "] " + std::to_string(state.global_step) + "/" +
           std::to_string(state.max_steps) + " [" + clock_time(seconds) + "<" + remaining +
           (steps > 0 ? fmt::format(", {:.2f} steps/s", steps / seconds) : std::string()) + "]";
  }
  if (predicted_ > 0) {
    line += (line.empty() ? "" : "  ") + std::string("evaluating ") + std::to_string(predicted_);
    if (predictions_) line += "/" + std::to_string(*predictions_);
  }
  std::fprintf(stderr, "\r\033[K%s", line.c_str());
  std::fflush(stderr);
  is_drawn_ = true;
}

void ProgressCallback::clear_bar() {
  if (!is_drawn_) return;
  std::fputs("\r\033[K", stderr);
  std::fflush(stderr);
  is_drawn_ = false;
}

// A row with other metrics than the table starts a new table.
void ProgressCallback::write_row(const Arguments& arguments, const State& state, const Metrics& metrics) {
  const bool by_epoch = arguments.eval_strategy == IntervalStrategy::epoch;
  std::vector<std::string> columns = {by_epoch ? "Epoch" : "Step", "Training Loss"};
  std::vector<std::string> cells = {
      by_epoch ? fmt::format("{:.4g}", state.epoch) : std::to_string(state.global_step),
      training_loss_ ? fmt::format("{:.6f}", *training_loss_) : "No log"};
  if (const auto loss = metrics.find("eval_loss"); loss != metrics.end()) {
    columns.push_back("Validation Loss");
    cells.push_back(fmt::format("{:.6f}", loss->second));
  }
  for (const auto& [name, value] : metrics) {
    if (!is_shown(name)) continue;
    columns.push_back(title_of(name));
    cells.push_back(fmt::format("{:.6f}", value));
  }
  const auto line_of = [&](const std::vector<std::string>& texts) {
    std::string line;
    for (std::size_t i = 0; i < texts.size(); ++i) {
      const std::size_t width = std::max<std::size_t>(columns[i].size(), 10);
      line += texts[i];
      if (i + 1 < texts.size()) line += std::string(width - std::min(width, texts[i].size()) + 2, ' ');
    }
    return line;
  };
  clear_bar();
  const std::string rows = (columns != columns_ ? line_of(columns) + "\n" : "") + line_of(cells) + "\n";
  std::fputs(rows.c_str(), stdout);
  std::fflush(stdout);
  columns_ = std::move(columns);
}

}  // namespace acc::detail
