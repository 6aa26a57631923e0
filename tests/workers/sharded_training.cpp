// SPDX-License-Identifier: Apache-2.0
// sharded_training WORD...: trains as FSDP_* say, and does what the words say, in their order:
//   steps N      prints the mean loss of each step, and the learning rate after it
//   save FOLDER, background FOLDER, load FOLDER
//   note FOLDER  a file of one's own in that folder
// sharded_training digest FOLDER, without others: prints what a checkpoint in shards has, whoever saved it.
// tests/parity/sharded_states/train.py does the same with Python's accelerate.
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/linear.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adamw.h>

#include <cstdint>
#include <cstdio>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "acc/base/environment.hpp"
#include "acc/base/error.hpp"
#include "acc/base/text.hpp"
#include "acc/formats/dcp_metadata.hpp"
#include "acc/runtime/accelerator/accelerator.hpp"
#include "acc/runtime/checkpoint/dcp_checkpoint.hpp"
#include "acc/runtime/checkpoint/torch_types.hpp"
#include "acc/runtime/optim/schedulers.hpp"

namespace {

constexpr std::int64_t kWords = 24;

std::int64_t width() {
  return acc::parse_integer(acc::Environment::of_process().get("ACC_TEST_WIDTH", "16")).value_or(16);
}

struct BlockImpl : torch::nn::Module {
  BlockImpl()
      : norm(register_module("norm", torch::nn::BatchNorm1d(width()))),
        up(register_module("up", torch::nn::Linear(width(), 2 * width()))),
        down(register_module("down", torch::nn::Linear(2 * width(), width()))) {}
  at::Tensor forward(const at::Tensor& x) {
    const at::Tensor y = at::linear(norm->forward(x), up->weight, up->bias);
    return x + at::linear(at::gelu(y), down->weight, down->bias);
  }
  torch::nn::BatchNorm1d norm;
  torch::nn::Linear up;
  torch::nn::Linear down;
};
TORCH_MODULE(Block);

// Its weight is the embedding's.
struct HeadImpl : torch::nn::Module {
  explicit HeadImpl(const at::Tensor& tied) : weight(register_parameter("weight", tied)) {}
  at::Tensor weight;
};
TORCH_MODULE(Head);

struct NetImpl : torch::nn::Module {
  NetImpl()
      : words(register_module("words", torch::nn::Embedding(kWords, width()))),
        block0(register_module("block0", Block())),
        block1(register_module("block1", Block())),
        out(register_module("out", Head(words->weight))) {}
  at::Tensor forward(const at::Tensor& x) {
    return at::linear(block1->forward(block0->forward(words->forward(x))), out->weight);
  }
  torch::nn::Embedding words;
  Block block0;
  Block block1;
  Head out;
};
TORCH_MODULE(Net);

std::shared_ptr<torch::optim::AdamW> make_optimizer(const torch::nn::Module& net) {
  std::vector<at::Tensor> decayed;
  std::vector<at::Tensor> others;
  for (const auto& item : net.named_parameters())
    if (item.key() != "out.weight") (item.value().dim() > 1 ? decayed : others).push_back(item.value());
  std::vector<torch::optim::OptimizerParamGroup> groups;
  const auto add = [&](const std::vector<at::Tensor>& parameters, double decay) {
    groups.emplace_back(parameters, std::make_unique<torch::optim::AdamWOptions>(
                                        torch::optim::AdamWOptions(1e-2).weight_decay(decay)));
  };
  add(decayed, 0.1);
  add(others, 0);
  return std::make_shared<torch::optim::AdamW>(groups);
}

void train(const std::vector<std::string>& words) {
  acc::Accelerator accelerator;
  acc::set_seed(1);
  Net net;
  auto native = make_optimizer(*net);
  auto plain = std::make_shared<acc::Scheduler>(
      *native, acc::lambda_lr([](std::int64_t step) { return 1 / (1 + 0.1 * static_cast<double>(step)); }));
  auto [model, optimizer, scheduler] = accelerator.prepare(net, native, plain);
  const auto rank = static_cast<std::int64_t>(accelerator.process_index());
  for (std::size_t i = 0; i + 1 < words.size(); i += 2) {
    const std::string& argument = words[i + 1];
    if (words[i] == "load") {
      accelerator.load_state(argument);
    } else if (words[i] == "save") {
      accelerator.save_state(argument);
    } else if (words[i] == "background") {
      accelerator.save_state(argument, {.background = true});
    } else if (words[i] == "note") {
      if (accelerator.is_main_process()) std::ofstream(argument + "/note.txt") << "mine";
    } else {
      for (std::int64_t steps = acc::parse_integer(argument).value(); steps > 0; --steps) {
        const std::int64_t step = plain->last_epoch() / accelerator.num_processes() + 1;
        const at::Tensor x =
            (at::arange(8, at::kLong) * (step + 3 * rank) + rank).remainder(kWords).to(accelerator.device());
        const at::Tensor loss = at::cross_entropy_loss(model(x), (x * 7 + 3).remainder(kWords));
        accelerator.backward(loss);
        optimizer.step();
        scheduler.step();
        optimizer.zero_grad();
        const double mean =
            accelerator.reduce(loss.detach().to(at::kDouble), acc::ReduceOp::mean).item<double>();
        if (rank == 0)
          std::printf("step %d %.9g %.17g\n", static_cast<int>(step), mean,
                      native->param_groups()[0].options().get_lr());
      }
    }
  }
  accelerator.wait_for_save();
}

void digest(const std::string& folder) {
  for (const std::string name : {"/pytorch_model_fsdp_0", "/optimizer_0"}) {
    for (const auto& [full_name, tensor] : acc::read_dcp_metadata(folder + name).tensors) {
      std::vector<std::string> path;
      for (const auto& key : tensor.path) path.push_back(std::get<std::string>(key));
      const at::Tensor values =
          at::empty(tensor.shape, at::TensorOptions(acc::detail::scalar_type_of(*tensor.dtype)));
      acc::load_sharded(folder + name, {acc::whole_range(path, values)});
      std::uint64_t hash = 14695981039346656037U;  // FNV-1a
      const auto* bytes = static_cast<const unsigned char*>(values.const_data_ptr());
      for (std::size_t i = 0; i < values.nbytes(); ++i) hash = (hash ^ bytes[i]) * 1099511628211U;
      std::printf("%s %016llx\n", full_name.c_str(), static_cast<unsigned long long>(hash));
    }
    for (const auto& [full_name, object] : acc::read_dcp_metadata(folder + name).objects)
      std::printf("%s\n", full_name.c_str());
  }
}

}  // namespace

int main(int argc, char** argv) try {
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (words.size() == 2 && words[0] == "digest") {
    digest(words[1]);
  } else {
    train(words);
  }
} catch (const acc::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
