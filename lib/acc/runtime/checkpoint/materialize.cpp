// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/checkpoint/materialize.hpp"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty_strided.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/nn/module.h>

#include <algorithm>
#include <functional>
#include <set>
#include <string>
#include <utility>

#include "acc/base/error.hpp"
#include "acc/base/replacement.hpp"
#include "acc/formats/weights_replacement.hpp"
#include "acc/runtime/checkpoint/model_state.hpp"
#include "acc/runtime/checkpoint/model_weights.hpp"

namespace acc {
namespace {

namespace fs = std::filesystem;

// Weights in files. The pages of mapped files count as memory of this process until they are unmapped, so the
// files are mapped anew from time to time.
class MappedWeights {
 public:
  explicit MappedWeights(std::function<NamedTensors()> read) : read_(std::move(read)), tensors_(read_()) {}

  const NamedTensors& tensors() const { return tensors_; }

  // Copies elements of a weight, in row-major order, from `begin` on.
  void copy(const std::string& name, std::int64_t begin, const at::Tensor& to) {
    if (!to.is_contiguous()) {
      to.copy_(tensors_.at(name));
      return;
    }
    const at::Tensor flat = to.view({-1});
    for (std::int64_t at = 0; at < flat.numel(); at += kElements) {
      const std::int64_t count = std::min(kElements, flat.numel() - at);
      const at::Tensor part = tensors_.at(name).reshape({-1}).narrow(0, begin + at, count);
      flat.narrow(0, at, count).copy_(part);
      copied_ += part.nbytes();
      if (copied_ >= kBytes) map_again();
    }
  }

 private:
  static constexpr std::int64_t kElements = std::int64_t{4} << 20U;
  static constexpr std::size_t kBytes = std::size_t{32} << 20U;

  void map_again() {
    tensors_.clear();
    tensors_ = read_();
    copied_ = 0;
  }

  std::function<NamedTensors()> read_;
  NamedTensors tensors_;
  std::size_t copied_ = 0;
};

using Named = std::vector<std::pair<std::string, at::Tensor>>;

// The tensors themselves, with those of a module that is registered twice under both names.
void add_tensors(const torch::nn::Module& module, const std::string& prefix, bool parameters,
                 Named& tensors) {
  if (parameters) {
    for (const auto& item : module.named_parameters(/*recurse=*/false))
      tensors.emplace_back(prefix + item.key(), item.value());
  }
  for (const auto& item : module.named_buffers(/*recurse=*/false))
    tensors.emplace_back(prefix + item.key(), item.value());
  for (const auto& child : module.named_children())
    add_tensors(*child.value(), prefix + child.key() + ".", parameters, tensors);
}

// set_data refuses another kind of device.
void give_memory(const at::Tensor& tensor, at::Device device) {
  const at::Tensor memory = at::empty_strided(tensor.sizes(), tensor.strides(),
                                              tensor.options().device(device).requires_grad(false));
  tensor.unsafeGetTensorImpl()->shallow_copy_from(memory.getIntrusivePtr());
}

std::string weight_name(const TensorRange& range) {
  return fmt::format("{}", fmt::join(range.path, "."));
}

// The files of a folder of weights are mapped more than once, and must be those of one save.
void read_one_save(const fs::path& path, const std::function<void()>& read) {
  read_unreplaced({path, path / kWeightsFile, path / kWeightsIndex}, [&] {
    read();
    return true;
  });
}

void fill(torch::nn::Module& module, const fs::path& path, const MaterializeOptions& options) {
  MappedWeights weights([&] { return detail::named_as_in(module, read_weights(path)); });
  detail::plan_model_load(module, weights.tensors(), path);
  Named tensors;
  add_tensors(module, "", options.parameters, tensors);
  std::set<const at::TensorImpl*> filled;
  for (const auto& [name, tensor] : tensors) {
    // A tied weight is stored under one of its names.
    if (!weights.tensors().contains(name) || !filled.insert(tensor.unsafeGetTensorImpl()).second) continue;
    if (detail::is_expanded(tensor)) continue;  // it has these values, or was refused
    if (tensor.is_meta()) give_memory(tensor, options.device);
    weights.copy(name, 0, tensor.detach());
  }
}

void read_ranges(const fs::path& path, const std::vector<TensorRange>& ranges) {
  MappedWeights weights([&] { return read_weights(path); });
  std::vector<Problem> problems;
  for (const TensorRange& range : ranges) {
    detail::require_inside(range);
    const std::string name = weight_name(range);
    const auto weight = weights.tensors().find(name);
    if (weight == weights.tensors().end()) {
      problems.push_back({fmt::format("has no tensor '{}'", name), path.string(), ""});
    } else if (weight->second.sizes() != at::IntArrayRef(range.shape)) {
      problems.push_back({fmt::format("tensor '{}' is [{}], the model's is [{}]", name,
                                      fmt::join(weight->second.sizes(), ", "), fmt::join(range.shape, ", ")),
                          path.string(), ""});
    }
  }
  if (!problems.empty()) throw Error(ErrorKind::config, std::move(problems));
  for (const TensorRange& range : ranges) weights.copy(weight_name(range), range.begin, range.elements);
}

}  // namespace

void materialize(torch::nn::Module& module, const fs::path& path, const MaterializeOptions& options) {
  const at::NoGradGuard no_grad;
  read_one_save(path, [&] { fill(module, path, options); });
}

void load_weight_ranges(const fs::path& path, const std::vector<TensorRange>& ranges) {
  const at::NoGradGuard no_grad;
  read_one_save(path, [&] { read_ranges(path, ranges); });
}

}  // namespace acc
