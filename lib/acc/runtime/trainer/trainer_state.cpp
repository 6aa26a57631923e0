// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/trainer/trainer_state.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>

#include "acc/base/error.hpp"
#include "acc/base/files.hpp"

namespace acc {
namespace {

using Json = nlohmann::json;

Json entry_of(const Metrics& metrics) {
  Json entry = Json::object();
  for (const auto& [name, value] : metrics) {
    if (name == "step") {
      entry[name] = static_cast<std::int64_t>(value);
    } else {
      entry[name] = value;
    }
  }
  return entry;
}

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

constexpr std::pair<std::string_view, double> kNotFinite[] = {
    {"-Infinity", -std::numeric_limits<double>::infinity()},
    {"Infinity", std::numeric_limits<double>::infinity()},
    {"NaN", std::numeric_limits<double>::quiet_NaN()}};

// The words for numbers that Python's json writes and JSON does not have become strings.
std::string with_words_quoted(std::string_view python) {
  std::string json;
  bool in_string = false;
  while (!python.empty()) {
    std::size_t length = 1;
    if (in_string) {
      if (python.front() == '\\') length = std::min<std::size_t>(2, python.size());
    } else {
      const auto* word =
          std::ranges::find_if(kNotFinite, [&](const auto& one) { return python.starts_with(one.first); });
      if (word != std::end(kNotFinite)) {
        json.append(1, '"').append(word->first).append(1, '"');
        python.remove_prefix(word->first.size());
        continue;
      }
    }
    if (python.front() == '"') in_string = !in_string;
    json.append(python.substr(0, length));
    python.remove_prefix(length);
  }
  return json;
}

// See with_words_quoted; absent for what is no number.
std::optional<double> number_of(const Json& value) {
  if (value.is_number()) return value.get<double>();
  if (!value.is_string()) return std::nullopt;
  const auto* word = std::ranges::find(kNotFinite, value.get_ref<const std::string&>(),
                                       &std::pair<std::string_view, double>::first);
  return word == std::end(kNotFinite) ? std::nullopt : std::optional(word->second);
}

// A null in JSON stands for a number that was not finite.
Metrics metrics_of(const Json& entry) {
  Metrics metrics;
  for (const auto& [name, value] : entry.items()) {
    if (const auto number = number_of(value)) metrics[name] = *number;
    if (value.is_null()) metrics[name] = std::nan("");
  }
  return metrics;
}

}  // namespace

std::string to_json(const TrainerState& state) {
  Json history = Json::array();
  for (const Metrics& entry : state.log_history) history.push_back(entry_of(entry));
  Json callbacks = Json::object();
  for (const auto& [name, text] : state.stateful_callbacks) callbacks[name] = Json::parse(text);
  const std::string best = state.best_model_checkpoint.string();
  const Json object = {{"epoch", state.epoch},
                       {"global_step", state.global_step},
                       {"max_steps", state.max_steps},
                       {"num_train_epochs", state.num_train_epochs},
                       {"logging_steps", state.logging_steps},
                       {"eval_steps", state.eval_steps},
                       {"save_steps", state.save_steps},
                       {"train_batch_size", state.train_batch_size},
                       {"log_history", history},
                       {"best_metric", or_null(state.best_metric)},
                       {"best_global_step", or_null(state.best_global_step)},
                       {"best_model_checkpoint", best.empty() ? Json() : Json(best)},
                       {"is_local_process_zero", state.is_local_process_zero},
                       {"is_world_process_zero", state.is_world_process_zero},
                       {"is_hyper_param_search", false},
                       {"num_input_tokens_seen", state.num_input_tokens_seen},
                       {"total_flos", 0.0},
                       {"trial_name", nullptr},
                       {"trial_params", nullptr},
                       {"stateful_callbacks", callbacks}};
  return object.dump(2) + "\n";
}

TrainerState read_trainer_state(const std::filesystem::path& file) {
  try {
    const Json object = Json::parse(with_words_quoted(read_file(file)));
    TrainerState state;
    state.epoch = object.at("epoch").get<double>();
    state.global_step = object.at("global_step").get<std::int64_t>();
    state.max_steps = object.value("max_steps", state.max_steps);
    state.num_train_epochs = object.value("num_train_epochs", state.num_train_epochs);
    state.train_batch_size = object.value("train_batch_size", Json()).is_number()
                                 ? object["train_batch_size"].get<std::int64_t>()
                                 : 0;
    state.num_input_tokens_seen = object.value("num_input_tokens_seen", state.num_input_tokens_seen);
    const Json history = object.value("log_history", Json::array());
    for (const Json& entry : history) state.log_history.push_back(metrics_of(entry));
    state.best_metric = number_of(object.value("best_metric", Json()));
    if (const Json step = object.value("best_global_step", Json()); step.is_number())
      state.best_global_step = step.get<std::int64_t>();
    if (object.value("best_model_checkpoint", Json()).is_string())
      state.best_model_checkpoint = object["best_model_checkpoint"].get<std::string>();
    const Json callbacks = object.value("stateful_callbacks", Json::object());
    for (const auto& [name, value] : callbacks.items()) state.stateful_callbacks[name] = value.dump();
    return state;
  } catch (const Json::exception& error) {
    throw Error({.kind = ErrorKind::config,
                 .what = std::string("is not the state of a Trainer: ") + error.what(),
                 .where = file.string()});
  }
}

}  // namespace acc
