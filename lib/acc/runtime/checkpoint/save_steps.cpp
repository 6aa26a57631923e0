// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/checkpoint/save_steps.hpp"

#include <torch/nn/module.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "acc/runtime/checkpoint/checkpoint_names.hpp"
#include "acc/runtime/checkpoint/model_state.hpp"
#include "acc/runtime/checkpoint/safetensors.hpp"
#include "acc/runtime/comm/process_group.hpp"

namespace acc::detail {

namespace fs = std::filesystem;
namespace {

// Together: replaces the buffers among the tensors by the main process's.
void take_buffers_of_main(const torch::nn::Module& model, NamedTensors& tensors,
                          const SavingProcesses& processes) {
  std::vector<std::string> names;
  std::vector<at::Tensor> buffers;
  for (const auto& buffer : model.named_buffers()) {
    names.push_back(buffer.key());
    buffers.push_back(buffer.value().detach().clone());
  }
  if (processes.group && !buffers.empty()) processes.group->broadcast(buffers, 0);
  for (std::size_t i = 0; i < names.size(); ++i)
    for (auto& [name, tensor] : tensors)
      if (name == names[i]) tensor = buffers[i];
}

}  // namespace

CheckpointSave::CheckpointSave(const fs::path& folder, const CheckpointContent& content,
                               const SavingProcesses& processes, const SaveCheckpointOptions& options,
                               TensorCopies* copies)
    : folder_(folder, is_checkpoint_file) {
  begin_together(folder_, processes);
  fill_together(folder_, processes, [&] {
    collect(content, processes, options);
    if (copies != nullptr) copy(*copies);
  });
}

void CheckpointSave::collect(const CheckpointContent& content, const SavingProcesses& processes,
                             const SaveCheckpointOptions& options) {
  const bool writes = processes.writes_shared(options.save_on_each_node);
  for (const torch::nn::Module* model : content.models) {
    for (const auto& [name, tensor] : ordered_state_of(*model)) require_utf8_name(name);
  }
  std::vector<NamedTensors> weights;
  std::vector<PtValue> optimizers;
  if (options.in_shards) {
    shards_ = shards_of(content, processes.is_main());
  } else {
    for (const torch::nn::Module* model : content.models) weights.push_back(weights_of(*model, writes));
    if (options.buffers_of_main)
      for (std::size_t i = 0; i < weights.size(); ++i)
        take_buffers_of_main(*content.models[i], weights[i], processes);
    optimizers = optimizer_states(content, writes);
  }
  for (const SaveStatePreHook& hook : options.hooks) hook(weights, folder_.temporary());
  if (writes)
    files_ = shared_files(content, std::move(weights), std::move(optimizers), options.safe_serialization);
  std::vector<CheckpointFile> own = own_files(content, processes.index);
  std::ranges::move(own, std::back_inserter(files_));
  if (options.add_files) options.add_files(folder_.temporary());
}

void CheckpointSave::copy(TensorCopies& copies) {
  copies.begin();
  for (CheckpointFile& file : files_)
    std::visit([&](auto& content) { copies.replace_in(content); }, file.content);
  for (CheckpointShards& shards : shards_)
    for (TensorRange& range : shards.state.ranges) copies.replace_in(range);
  copies.finish();
}

void CheckpointSave::finish(const SavingProcesses& processes,
                            const std::vector<std::function<void(const fs::path&)>>& last_steps) {
  fill_together(folder_, processes, [&] { write_files(folder_.temporary(), files_); });
  for (const CheckpointShards& shards : shards_)
    write_sharded_files(folder_, shards.folder, shards.state, processes);
  for (const auto& step : last_steps) fill_together(folder_, processes, [&] { step(folder_.temporary()); });
  publish_together(folder_, processes);
}

}  // namespace acc::detail
