// SPDX-License-Identifier: Apache-2.0
// sharded_state save TO | copy FROM TO | check FROM: saves the same model and the same state of AdamW on any
// number of processes, each its shards; loads them, checks each value, and saves them again.
// tests/parity/sharded/peer.py does the same with Python's fully_shard.
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <torch/optim/adamw.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "acc/base/error.hpp"
#include "acc/runtime/accelerator/accelerator.hpp"
#include "acc/runtime/checkpoint/dcp_checkpoint.hpp"
#include "acc/runtime/checkpoint/dcp_optimizer_state.hpp"
#include "acc/runtime/checkpoint/optimizer_state.hpp"

namespace {

namespace fs = std::filesystem;
using acc::TensorRange;

struct Parameter {
  std::string name;
  std::vector<std::int64_t> shape;
};

// By groups of the optimizer: with weight decay and without.
const std::vector<std::vector<Parameter>> kGroups = {
    {{"embed.weight", {7, 5}}, {"layers.0.weight", {5, 3, 2}}},
    {{"layers.0.bias", {5}}, {"norm.weight", {4}}},
};

void require(bool truth, const std::string& what) {
  if (!truth) throw acc::Error({.what = what});
}

std::int64_t numel_of(const std::vector<std::int64_t>& shape) {
  std::int64_t numel = 1;
  for (const std::int64_t size : shape) numel *= size;
  return numel;
}

// Numbers that any type represents exactly. `which` tells the model's values and the optimizer's apart.
at::Tensor values(std::size_t parameter, const std::vector<std::int64_t>& shape, std::int64_t which) {
  const at::Tensor numbers = at::arange(numel_of(shape), at::kLong) * 7;
  return (numbers + 31 * static_cast<std::int64_t>(parameter) + 57 * which)
      .remainder(251)
      .to(at::kFloat)
      .view(shape);
}

// This process's shards: for each group, its parameters lie one after the other and are cut evenly.
class Shards {
 public:
  Shards(int rank, int size) {
    std::size_t number = 0;
    for (const auto& group : kGroups) {
      std::int64_t all = 0;
      for (const Parameter& parameter : group) all += padded(numel_of(parameter.shape));
      const std::int64_t length = (all + size - 1) / size;
      std::vector<at::Tensor> parameters;
      std::vector<std::string> names;
      std::int64_t offset = -rank * length;
      for (const Parameter& parameter : group) {
        const std::int64_t numel = numel_of(parameter.shape);
        const std::int64_t begin = std::max<std::int64_t>(offset, 0);
        const std::int64_t end = std::min(offset + numel, length);
        if (begin < end) {
          parameters.push_back(at::zeros({end - begin}));
          parts_.push_back(parameters.back());
          numbers_.push_back(number);
          parameters_.ranges.push_back(
              acc::detail::ParameterRange{parameter.name, parameter.shape, begin - offset, end - begin});
        }
        names.push_back(parameter.name);
        offset += padded(numel);
        ++number;
      }
      parameters_.names.push_back(names);
      groups_.emplace_back(parameters, std::make_unique<torch::optim::AdamWOptions>(1e-3));
    }
    if (rank == 0)
      buffers_ = {{"running.count", at::zeros({}, at::kLong)},
                  {"running.mean", at::zeros({3}, at::kBFloat16)}};
    optimizer_ = std::make_unique<torch::optim::AdamW>(groups_);
  }

  // The values that are saved.
  void fill() {
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      const acc::detail::ParameterRange& range = *parameters_.ranges[i];
      const auto part = [&](std::int64_t which) {
        return values(numbers_[i], range.shape, which).flatten().narrow(0, range.begin, range.numel);
      };
      parts_[i].copy_(part(0));
      auto state = std::make_unique<torch::optim::AdamWParamState>();
      state->step(3 + static_cast<std::int64_t>(numbers_[i]));
      state->exp_avg(part(1));
      state->exp_avg_sq(part(2));
      optimizer_->state()[parts_[i].unsafeGetTensorImpl()] = std::move(state);
    }
    for (std::size_t i = 0; i < optimizer_->param_groups().size(); ++i) {
      auto& options = static_cast<torch::optim::AdamWOptions&>(optimizer_->param_groups()[i].options());
      options.lr(0.25).betas({0.5, 0.75}).weight_decay(i == 0 ? 0.125 : 0);
    }
    if (!buffers_.empty()) {
      buffers_[0].second.fill_(5);
      buffers_[1].second.fill_(1.5);
    }
  }

  void save(const fs::path& folder, const acc::SavingProcesses& processes) const {
    acc::save_sharded(folder / "pytorch_model_fsdp_0", {.ranges = model()}, processes);
    acc::save_sharded(folder / "optimizer_0", acc::detail::dcp_optimizer_state(*optimizer_, parameters_),
                      processes);
  }

  void load(const fs::path& folder) {
    acc::load_sharded(folder / "pytorch_model_fsdp_0", model());
    const fs::path shards = folder / "optimizer_0";
    const acc::PtValue state = acc::detail::read_dcp_optimizer_state(shards, *optimizer_, parameters_);
    acc::detail::plan_optimizer_load(*optimizer_, state, shards.string())();
  }

  // `wanted` has the same shards.
  void check(Shards wanted) const {
    wanted.fill();
    const auto equal = [](const at::Tensor& loaded, const at::Tensor& other, const char* what) {
      require(loaded.equal(other), std::string(what) + " differs");
    };
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      equal(parts_[i], wanted.parts_[i], "a parameter");
      const auto& loaded = state_of(i);
      const auto& other = wanted.state_of(i);
      require(loaded.step() == other.step(), "a step differs");
      equal(loaded.exp_avg(), other.exp_avg(), "exp_avg");
      equal(loaded.exp_avg_sq(), other.exp_avg_sq(), "exp_avg_sq");
    }
    for (std::size_t i = 0; i < buffers_.size(); ++i)
      equal(buffers_[i].second, wanted.buffers_[i].second, "a buffer");
    for (std::size_t i = 0; i < optimizer_->param_groups().size(); ++i) {
      const auto& loaded = optimizer_->param_groups()[i].options();
      require(
          static_cast<const torch::optim::AdamWOptions&>(loaded) ==
              static_cast<const torch::optim::AdamWOptions&>(wanted.optimizer_->param_groups()[i].options()),
          "the options differ");
    }
  }

 private:
  static std::int64_t padded(std::int64_t numel) { return (numel + 3) / 4 * 4; }

  const torch::optim::AdamWParamState& state_of(std::size_t parameter) const {
    return static_cast<const torch::optim::AdamWParamState&>(
        *optimizer_->state().at(parts_[parameter].unsafeGetTensorImpl()));
  }

  std::vector<TensorRange> model() const {
    std::vector<TensorRange> ranges;
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      const acc::detail::ParameterRange& range = *parameters_.ranges[i];
      ranges.push_back(
          {.path = {"model", range.name}, .shape = range.shape, .begin = range.begin, .elements = parts_[i]});
    }
    for (const auto& [name, buffer] : buffers_) ranges.push_back(acc::whole_range({"model", name}, buffer));
    return ranges;
  }

  acc::detail::ShardedParameters parameters_ = {};
  std::vector<std::size_t> numbers_ = {};
  std::vector<at::Tensor> parts_ = {};
  std::vector<torch::optim::OptimizerParamGroup> groups_ = {};
  std::unique_ptr<torch::optim::AdamW> optimizer_ = {};
  std::vector<std::pair<std::string, at::Tensor>> buffers_ = {};
};

void run(const std::vector<std::string>& words) {
  const acc::Accelerator accelerator;
  const at::NoGradGuard no_grad;
  const acc::SavingProcesses processes = {.index = accelerator.process_index(),
                                          .local_index = accelerator.local_process_index(),
                                          .group = accelerator.process_group()};
  Shards shards(processes.index, accelerator.num_processes());
  if (words[0] == "save") {
    shards.fill();
  } else {
    shards.load(words[1]);
    shards.check(Shards(processes.index, accelerator.num_processes()));
  }
  if (words[0] != "check") shards.save(words.back(), processes);
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 3) throw acc::Error({.what = "sharded_state save TO | copy FROM TO | check FROM"});
  run({argv + 1, argv + argc});
} catch (const acc::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
