// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/checkpoint/state_files.hpp"

#include <utility>

#include "acc/runtime/checkpoint/checkpoint_names.hpp"
#include "acc/runtime/checkpoint/gathered_optimizer_state.hpp"
#include "acc/runtime/checkpoint/model_state.hpp"
#include "acc/runtime/checkpoint/optimizer_state.hpp"
#include "acc/runtime/checkpoint/process_states.hpp"
#include "acc/runtime/checkpoint/two_threads.hpp"

namespace acc::detail {
namespace {

CheckpointFile weights_file(std::size_t index, NamedTensors weights, bool safe) {
  if (safe) {
    require_writable(weights);
    return {.name = numbered_file("model", index, ".safetensors"),
            .content = Safetensors{.tensors = std::move(weights), .metadata = {{"format", "pt"}}}};
  }
  PtDict dict;
  for (const auto& [name, tensor] : weights) dict.push_back({name, tensor});
  return {.name = numbered_file("pytorch_model", index, ".bin"), .content = PtValue(std::move(dict))};
}

void add_states(std::vector<CheckpointFile>& files, const std::string& stem,
                const std::vector<Stateful>& objects) {
  for (std::size_t i = 0; i < objects.size(); ++i)
    files.push_back({.name = numbered_file(stem, i, ".bin"), .content = objects[i].state()});
}

void write_file(const std::filesystem::path& file, const Safetensors& content) {
  write_safetensors(file, content);
}

void write_file(const std::filesystem::path& file, const PtValue& value) {
  write_pt_file(file, value);
}

}  // namespace

NamedTensors weights_of(const torch::nn::Module& module, bool keep) {
  const OrderedTensors tensors = with_full_values(without_ties(ordered_state_of(module)), keep);
  return {tensors.begin(), tensors.end()};
}

std::vector<PtValue> optimizer_states(const CheckpointContent& content, bool keep) {
  std::vector<PtValue> states;
  for (std::size_t i = 0; i < content.optimizers.size(); ++i) {
    const auto sharded = content.sharded(i);
    states.push_back(sharded ? gathered_optimizer_state(*sharded, keep)
                     : keep  ? optimizer_state(*content.optimizers[i])
                             : PtValue());
  }
  return states;
}

std::vector<CheckpointFile> shared_files(const CheckpointContent& content, std::vector<NamedTensors> weights,
                                         std::vector<PtValue> optimizers, bool safe_serialization) {
  std::vector<CheckpointFile> files;
  for (std::size_t i = 0; i < weights.size(); ++i)
    files.push_back(weights_file(i, std::move(weights[i]), safe_serialization));
  for (std::size_t i = 0; i < optimizers.size(); ++i)
    files.push_back({.name = numbered_file("optimizer", i, ".bin"), .content = std::move(optimizers[i])});
  add_states(files, "scheduler", content.schedulers);
  add_states(files, "dl_state_dict", content.loaders);
  for (std::size_t i = 0; i < content.gradient_buckets.size(); ++i) {
    PtValue buckets = content.gradient_buckets[i].state();
    if (!buckets.is_none())
      files.push_back({.name = numbered_file(kBucketsStem, i, ".bin"), .content = std::move(buckets)});
  }
  if (content.scaler) files.push_back({.name = kScalerFile, .content = content.scaler->state()});
  for (std::size_t i = 0; i < content.registered.size(); ++i)
    files.push_back({.name = custom_file(i), .content = content.registered[i].state()});
  return files;
}

std::vector<CheckpointFile> own_files(const CheckpointContent& content, int process) {
  std::vector<CheckpointFile> files;
  files.push_back({.name = random_states_file(process), .content = random_states(content.step)});
  if (content.accumulates) {
    files.push_back({.name = gradients_file(process),
                     .content = PtValue(PtDict{{kNumProcesses, content.num_processes},
                                               {kGradients, gradients_of(content.models)}})});
  }
  return files;
}

void write_files(const std::filesystem::path& folder, const std::vector<CheckpointFile>& files) {
  on_two_threads(files.size(), [&](std::size_t i) {
    std::visit([&](const auto& content) { write_file(folder / files[i].name, content); }, files[i].content);
  });
}

}  // namespace acc::detail
