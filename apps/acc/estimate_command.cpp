// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "acc/base/error.hpp"
#include "acc/base/files.hpp"
#include "acc/base/replacement.hpp"
#include "acc/weights/checkpoint.hpp"
#include "acc/weights/memory_estimate.hpp"
#include "acc/weights/model_tensors.hpp"
#include "command_parsing.hpp"
#include "commands.hpp"

namespace acc::launcher {
namespace {

namespace fs = std::filesystem;

struct EstimateOptions {
  std::string model = {};
  std::string library = {};
  std::vector<std::string> dtypes = {"float32", "float16", "int8", "int4"};
  bool trust_remote_code = false;
  int num_processes = 0;
};

struct Model {
  ModelSize size = {};
  std::int64_t gathered = 0;
};

nlohmann::json read_json(const fs::path& file) {
  nlohmann::json json = nlohmann::json::parse(read_file(file), nullptr, false);
  if (!json.is_object())
    throw Error({.kind = ErrorKind::config, .what = "is not a JSON object", .where = file.string()});
  return json;
}

Model read_model_once(const fs::path& path) {
  const bool is_config = path.extension() == ".json";
  const fs::path config_file =
      is_config ? path : (fs::is_directory(path) ? path : path.parent_path()) / "config.json";
  const nlohmann::json config = fs::exists(config_file) ? read_json(config_file) : nlohmann::json();
  std::vector<TensorInfo> tensors;
  if (!is_config) {
    for (const CheckpointFile& file : read_checkpoint(path))
      tensors.insert(tensors.end(), file.header.tensors.begin(), file.header.tensors.end());
  }
  if (tensors.empty() && config.is_null()) {
    throw Error({.kind = ErrorKind::config,
                 .what = "has neither safetensors files nor a config.json",
                 .where = path.string()});
  }
  if (tensors.empty()) tensors = tensors_of_config(config, config_file);
  return {.size = model_size(tensors, config), .gathered = gathered_at_once(tensors)};
}

Model read_model(const fs::path& path) {
  return read_unreplaced(paths_of_weights(path), [&] { return read_model_once(path); });
}

void print_training(const Model& model, int processes) {
  std::vector<std::vector<std::string>> rows;
  constexpr std::int64_t kFloatBytes = 4;
  for (const TrainingMemory& row :
       training_memory((model.size.total + model.size.head) / kFloatBytes, processes))
    rows.push_back({row.sharding, size_text(row.float32), size_text(row.mixed)});
  fmt::print("{}", framed_table(fmt::format("Memory of each of {} processes in training", processes),
                                {"Sharding", "float32", "bf16/fp16 mixed"}, rows));
  const auto gathered = static_cast<double>(model.gathered);
  fmt::print(
      "With Adam, without activations, whose size depends on the batch. While it computes, "
      "FULL_SHARD has up to {} of gathered\n"
      "parameters more, in 16 bits {}: those outside of the blocks, and two blocks.\n",
      size_text(gathered), size_text(gathered / 2));
}

int estimate(const EstimateOptions& options, const fs::path& path) {
  const Model model = read_model(path);
  fmt::print("{}", estimate_table(options.model, model.size, options.dtypes));
  if (model.size.head > 0)
    fmt::print("The head of the task, which the table omits as accelerate's does: {} in float32.\n",
               size_text(static_cast<double>(model.size.head)));
  if (options.num_processes > 0) print_training(model, options.num_processes);
  return 0;
}

}  // namespace

void add_estimate_command(CLI::App& app, int& code, std::function<fs::path(const std::string& name)> find) {
  const auto options = std::make_shared<EstimateOptions>();
  CLI::App* command =
      app.add_subcommand("estimate-memory", "Estimate the memory that a model needs, without loading it");
  CLI::Option* model =
      command->add_option("model_name", options->model,
                          "A folder, a safetensors file, a config.json, or a model in the hub's cache");
  refuse_empty(model, "name a model")->required();
  command->add_option("--dtypes", options->dtypes, "Types of the weights")
      ->check(CLI::IsMember({"float32", "float16", "int8", "int4"}));
  command
      ->add_option("--num_processes,--num-processes", options->num_processes,
                   "Show the memory of each of N training processes, for each kind of sharding")
      ->check(CLI::Range(1, 1'000'000));
  command->add_option("--library_name,--library-name", options->library,
                      "Accepted for compatibility with accelerate; has no effect");
  command->add_flag("--trust_remote_code,--trust-remote-code", options->trust_remote_code,
                    "Accepted for compatibility with accelerate; no code is run");
  command->callback(
      [options, &code, find = std::move(find)] { code = estimate(*options, find(options->model)); });
}

}  // namespace acc::launcher
