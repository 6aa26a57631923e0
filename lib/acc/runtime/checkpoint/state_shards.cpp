// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/checkpoint/state_shards.hpp"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <fmt/format.h>
#include <torch/nn/module.h>
#include <torch/optim/optimizer.h>

#include <algorithm>
#include <set>
#include <unordered_map>
#include <utility>

#include "acc/base/error.hpp"
#include "acc/formats/dcp_metadata.hpp"
#include "acc/runtime/checkpoint/checkpoint_names.hpp"
#include "acc/runtime/checkpoint/dcp_optimizer_state.hpp"
#include "acc/runtime/checkpoint/optimizer_state.hpp"
#include "acc/runtime/checkpoint/parameter_names.hpp"
#include "acc/runtime/checkpoint/torch_types.hpp"
#include "acc/runtime/sharded/sharded_module.hpp"
#include "acc/runtime/sharded/sharded_optimizer.hpp"
#include "acc/runtime/sharded/unit.hpp"

namespace acc::detail {
namespace {

namespace fs = std::filesystem;

constexpr const char* kModel = "model";

ShardedState model_state(const torch::nn::Module& module, bool is_main) {
  ShardedState state;
  for (const auto& [name, tensor] : ordered_state_of(module)) {
    Unit* unit = unit_of(tensor);
    if (unit == nullptr) {
      if (is_main) state.ranges.push_back(whole_range({kModel, name}, tensor));
      continue;
    }
    const std::size_t index = unit->piece_at(tensor.storage_offset());
    const Piece& piece = unit->pieces()[index];
    if (!piece.has_values) {
      throw Error({.what = "was made on the meta device and has no values",
                   .where = fmt::format("parameter '{}'", name),
                   .hint = "load_model or load_state gives it values"});
    }
    const Overlap part = unit->overlap(index);
    // A parameter without elements is in no shard.
    if (piece.numel == 0 && is_main)
      state.ranges.push_back(
          {.path = {kModel, name}, .shape = piece.shape, .elements = unit->shard().narrow(0, 0, 0)});
    if (part.length == 0) continue;
    state.ranges.push_back({.path = {kModel, name},
                            .shape = piece.shape,
                            .begin = part.in_piece,
                            .elements = unit->shard().narrow(0, part.in_shard, part.length)});
  }
  return state;
}

// The ranges of the parameters that the optimizer has on this process. Those that it has as a whole are left
// out unless `whole`.
ShardedParameters sharded_parameters(const CheckpointContent& content, std::size_t optimizer, bool whole) {
  const ParameterNames names = names_in_model(content, optimizer);
  std::unordered_map<const c10::TensorImpl*, ParameterRange> parts;
  if (const auto sharded = content.sharded(optimizer)) {
    for (const auto& module : sharded->modules())
      for (const auto& unit : module->units())
        for (const TrainedPart& part : unit->trained_parts())
          parts.emplace(part.values.unsafeGetTensorImpl(),
                        ParameterRange{.name = unit->pieces()[part.piece].name,
                                       .shape = unit->pieces()[part.piece].shape,
                                       .begin = part.overlap.in_piece,
                                       .numel = part.overlap.length});
  }
  ShardedParameters parameters;
  for (const auto& group : original_parameters(content, optimizer)) {
    auto& of_group = parameters.names.emplace_back();
    for (const at::Tensor& parameter : group) of_group.push_back(names.at(parameter.unsafeGetTensorImpl()));
  }
  for (const auto& group : content.optimizers[optimizer]->param_groups()) {
    for (const at::Tensor& parameter : group.params()) {
      auto& range = parameters.ranges.emplace_back();
      const auto match = parts.find(parameter.unsafeGetTensorImpl());
      if (match != parts.end()) {
        range = match->second;
      } else if (whole) {
        range = ParameterRange{.name = names.at(parameter.unsafeGetTensorImpl()),
                               .shape = parameter.sizes().vec(),
                               .numel = parameter.numel()};
      }
    }
  }
  return parameters;
}

// The tensors of the model in such a folder, without memory, by their names in the model.
NamedTensors tensors_in(const fs::path& folder) {
  NamedTensors tensors;
  for (const auto& [full_name, tensor] : read_dcp_metadata(folder).tensors) {
    if (tensor.path.size() < 2 || tensor.path.front() != DcpPath::value_type(kModel)) continue;
    tensors.emplace(
        dcp_name({tensor.path.begin() + 1, tensor.path.end()}),
        at::empty(tensor.shape, at::TensorOptions(at::kMeta).dtype(scalar_type_of(*tensor.dtype))));
  }
  return tensors;
}

// Earlier checkpoints lack the sharded parameters that had no elements: nothing is missing.
void add_without_elements(const torch::nn::Module& module, NamedTensors& saved) {
  for (const auto& [name, tensor] : ordered_state_of(module)) {
    if (tensor.numel() == 0)
      saved.try_emplace(name,
                        at::empty(tensor.sizes(), at::TensorOptions(at::kMeta).dtype(tensor.scalar_type())));
  }
}

// What is read of a unit: this process's shard.
struct LoadedShard {
  Unit* unit = nullptr;
  at::Tensor values = {};
  std::vector<std::size_t> pieces = {};
};

}  // namespace

std::vector<CheckpointShards> shards_of(const CheckpointContent& content, bool is_main) {
  std::vector<CheckpointShards> shards;
  for (std::size_t i = 0; i < content.models.size(); ++i)
    shards.push_back({sharded_model_folder(i), model_state(*content.models[i], is_main)});
  for (std::size_t i = 0; i < content.optimizers.size(); ++i) {
    const std::vector<double> rates =
        i < content.initial_rates.size() ? content.initial_rates[i] : std::vector<double>();
    shards.push_back(
        {sharded_optimizer_folder(i),
         dcp_optimizer_state(*content.optimizers[i], sharded_parameters(content, i, is_main), rates)});
  }
  return shards;
}

PlannedModel plan_model_shards(const torch::nn::Module& module, const fs::path& folder, bool strict) {
  NamedTensors saved = tensors_in(folder);
  add_without_elements(module, saved);
  IncompatibleKeys keys = require_fitting(module, saved, folder, strict);
  std::vector<LoadedShard> shards;
  OrderedTensors whole;
  std::vector<TensorRange> ranges;
  std::set<std::pair<const Unit*, std::size_t>> visited;  // a tied weight has several names
  for (const auto& [name, tensor] : ordered_state_of(module)) {
    if (!saved.contains(name)) continue;
    Unit* unit = unit_of(tensor);
    if (unit == nullptr) {
      if (tensor.numel() == 0) continue;
      whole.emplace_back(name, at::empty(tensor.sizes(), tensor.options().device(at::kCPU)));
      ranges.push_back(whole_range({kModel, name}, whole.back().second));
      continue;
    }
    const std::size_t piece = unit->piece_at(tensor.storage_offset());
    if (!visited.emplace(unit, piece).second) continue;
    auto shard = std::ranges::find(shards, unit, &LoadedShard::unit);
    if (shard == shards.end())
      shard = shards.insert(shard, {.unit = unit, .values = unit->shard().to(at::kCPU).clone()});
    shard->pieces.push_back(piece);
    const Overlap part = unit->overlap(piece);
    if (part.length == 0) continue;
    ranges.push_back({.path = {kModel, name},
                      .shape = unit->pieces()[piece].shape,
                      .begin = part.in_piece,
                      .elements = shard->values.narrow(0, part.in_shard, part.length)});
  }
  load_sharded(folder, ranges);
  return {.keys = std::move(keys),
          .load = [own = state_of(module), shards = std::move(shards), whole = std::move(whole)] {
            const at::NoGradGuard no_grad;
            for (const auto& [name, values] : whole) own.at(name).copy_(values);
            for (const LoadedShard& shard : shards) {
              shard.unit->set_shard(shard.values, shard.pieces);
              shard.unit->refill();
            }
          }};
}

std::function<void()> plan_optimizer_shards(const CheckpointContent& content, std::size_t optimizer,
                                            const fs::path& folder) {
  torch::optim::Optimizer& native = *content.optimizers[optimizer];
  const PtValue state =
      read_dcp_optimizer_state(folder, native, sharded_parameters(content, optimizer, /*whole=*/true));
  return plan_optimizer_load(native, state, folder.string());
}

bool is_in_shards(const fs::path& shards, const fs::path& file) {
  if (!fs::is_directory(shards)) return false;
  if (!fs::exists(file)) return true;
  throw Error(
      {.kind = ErrorKind::config,
       .what = fmt::format("has both {} and {}", shards.filename().string(), file.filename().string()),
       .where = shards.parent_path().string(),
       .hint = "remove the one that is not to be loaded"});
}

fs::path model_shards_in(const fs::path& checkpoint, std::size_t model) {
  const fs::path shards = checkpoint / sharded_model_folder(model);
  return is_in_shards(shards, model_file_in(checkpoint, model)) ? shards : fs::path();
}

fs::path folder_of_model_shards(const fs::path& path, std::size_t model) {
  if (fs::path shards = model_shards_in(path, model); !shards.empty()) return shards;
  return fs::exists(path / kDcpMetadataFile) ? path : fs::path();
}

}  // namespace acc::detail
