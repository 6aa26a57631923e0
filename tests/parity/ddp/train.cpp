// SPDX-License-Identifier: Apache-2.0
// train FOLDER SETUP...: 100 batches with fixed seeds; each process writes its losses, and in the end its
// parameters and buffers, to FOLDER/SETUP.RANK. train.py does the same in Python. With the word script the
// model is the one that Python saved to $ACC_SCRIPTS/SETUP-net.pt.
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/view_as_real.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adagrad.h>
#include <torch/optim/sgd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <list>
#include <optional>
#include <string>
#include <vector>

#include "acc/base/error.hpp"
#include "acc/runtime/accelerator/accelerator.hpp"
#include "acc/runtime/data/tensor_batches.hpp"
#include "acc/runtime/modules/script_module.hpp"
#include "acc/runtime/parallel/join.hpp"
#include "acc/runtime/parallel/local_sgd.hpp"
#include "acc/runtime/parallel/sync_batch_norm.hpp"
#include "acc/runtime/recomputation/checkpoint_function.hpp"

namespace {

constexpr int kBatches = 100;
constexpr int kBatchSize = 16;

// A set-up, whose name is made of words, such as join_norm.
class Setup {
 public:
  explicit Setup(std::string name) : words_("_" + name + "_") {}
  bool has(const std::string& word) const { return words_.find("_" + word + "_") != std::string::npos; }

  acc::DdpOptions ddp() const {
    acc::DdpOptions options;
    if (has("buckets")) options.bucket_cap_mb = 0.001;
    options.gradient_as_bucket_view = has("views");
    options.find_unused_parameters = has("unused");
    options.static_graph = has("static");
    if (has("fp16hook")) options.comm_hook = acc::CommHook::fp16;
    if (has("bf16hook")) options.comm_hook = acc::CommHook::bf16;
    return options;
  }
  bool norm() const { return has("norm") || has("syncnorm"); }
  bool checkpoints() const { return has("checkpoint"); }
  bool aux() const { return has("unused") || has("static"); }

  // The number of batches of a process.
  int batches(int rank) const {
    if (has("three")) return 60;
    return has("join") ? (rank == 0 ? 60 : 85) : kBatches;
  }

  // Whether a batch uses the auxiliary layer: not on all processes at once, and on none in every third batch.
  // With static_graph never.
  bool uses_aux(int batch, int rank) const {
    return has("unused") && (batch % 3 == 0 || (batch % 3 == 1 && rank == 0));
  }

 private:
  std::string words_;
};

// The names are those of Python's Sequential.
torch::nn::Sequential make_layers(const Setup& setup, std::int64_t inputs = 16) {
  torch::nn::Sequential layers;
  layers->push_back(torch::nn::Linear(inputs, 64));
  if (setup.norm()) layers->push_back(torch::nn::BatchNorm1d(64));
  if (setup.has("dropout")) layers->push_back(torch::nn::Dropout(0.3));
  layers->push_back(torch::nn::ReLU());
  layers->push_back(torch::nn::Linear(64, 4));
  return layers;
}

// Embeddings of words that the inputs name, whose gradients are sparse.
struct SparseNetImpl : torch::nn::Module {
  SparseNetImpl()
      : words(
            register_module("words", torch::nn::Embedding(torch::nn::EmbeddingOptions(50, 16).sparse(true)))),
        bag(register_module(
            "bag",
            torch::nn::EmbeddingBag(torch::nn::EmbeddingBagOptions(50, 16).sparse(true).mode(torch::kSum)))),
        layers(register_module("layers", make_layers(Setup("sparse")))) {}
  at::Tensor forward(const at::Tensor& x, bool /*uses_aux*/) {
    const at::Tensor named = (x * 10).to(at::kLong).abs().remainder(50);
    return layers->forward(words->forward(named).mean(1) + bag->forward(named));
  }
  torch::nn::Embedding words;
  torch::nn::EmbeddingBag bag;
  torch::nn::Sequential layers;
};

struct ComplexNetImpl : torch::nn::Module {
  ComplexNetImpl()
      : turns(register_parameter("turns", at::randn({16, 64}, at::kComplexFloat))),
        layers(register_module("layers", make_layers(Setup("complex"), 64))) {}
  at::Tensor forward(const at::Tensor& x, bool /*uses_aux*/) {
    return layers->forward(x.to(at::kComplexFloat).matmul(turns).abs());
  }
  at::Tensor turns;
  torch::nn::Sequential layers;
};

// The layers, but with the first one of `others`.
torch::nn::Sequential with_first_of(const torch::nn::Sequential& others,
                                    const torch::nn::Sequential& layers) {
  torch::nn::Sequential shared;
  shared->push_back(torch::nn::Linear(others->ptr<torch::nn::LinearImpl>(0)));
  for (std::size_t i = 1; i < layers->size(); ++i)
    shared->push_back(*(layers->begin() + static_cast<std::ptrdiff_t>(i)));
  return shared;
}

struct NetImpl : torch::nn::Module {
  explicit NetImpl(const Setup& setup, const NetImpl* shares_encoder = nullptr)
      : layers(make_layers(setup)), checkpoints(setup.checkpoints()) {
    if (shares_encoder != nullptr) layers = with_first_of(shares_encoder->layers, layers);
    register_module("layers", layers);
    if (setup.aux()) aux = register_module("aux", torch::nn::Linear(16, 4));
  }
  at::Tensor forward(const at::Tensor& x, bool uses_aux) {
    const at::Tensor out = checkpoints ? acc::checkpoint(layers, x) : layers->forward(x);
    return uses_aux ? out + aux->forward(x) : out;
  }
  torch::nn::Sequential layers;
  torch::nn::Linear aux{nullptr};
  bool checkpoints;
};

std::vector<at::Tensor> tensors_of(const torch::nn::Module& module) {
  std::vector<at::Tensor> state = module.parameters();
  for (const at::Tensor& buffer : module.buffers()) state.push_back(buffer);
  return state;
}

std::string state_lines(const std::vector<at::Tensor>& state, int rank) {
  std::string text;
  for (std::size_t i = 0; i < state.size(); ++i) {
    const at::Tensor real = state[i].is_complex() ? at::view_as_real(state[i].detach()) : state[i].detach();
    const at::Tensor values = real.to(at::kCPU, at::kDouble).reshape({-1});
    text += "state " + std::to_string(rank) + " " + std::to_string(i);
    for (std::int64_t j = 0; j < values.numel(); ++j) {
      char value[32];
      std::snprintf(value, sizeof value, " %.12g", values.const_data_ptr<double>()[j]);
      text += value;
    }
    text += "\n";
  }
  return text;
}

std::unique_ptr<torch::optim::Optimizer> make_optimizer(const Setup& setup,
                                                        std::vector<at::Tensor> parameters) {
  if (setup.has("adagrad"))
    return std::make_unique<torch::optim::Adagrad>(std::move(parameters), torch::optim::AdagradOptions(0.05));
  return std::make_unique<torch::optim::SGD>(std::move(parameters),
                                             torch::optim::SGDOptions(0.05).momentum(0.9));
}

std::string loss_line(int rank, int batch, const at::Tensor& loss) {
  char line[64];
  std::snprintf(line, sizeof line, "loss %d %d %.12g\n", rank, batch, loss.item<double>());
  return line;
}

auto make_loader() {
  acc::set_seed(12);
  constexpr std::int64_t kSamples = 2 * kBatches * kBatchSize;
  const at::Tensor inputs = at::randn({kSamples, 16});
  const at::Tensor targets = at::randint(4, {kSamples}, at::TensorOptions(at::kLong));
  return acc::DataLoader(acc::TensorDataset(inputs, targets),
                         {.batch_size = kBatchSize, .shuffle = true, .seed = 5});
}

at::Tensor gradient_penalty(const at::Tensor& loss, const at::Tensor& x) {
  return torch::autograd::grad({loss}, {x}, {}, /*retain_graph=*/true, /*create_graph=*/true)[0]
      .square()
      .sum();
}

template <class Net>
void train(const Setup& setup, const std::string& file, const Net& make_net) {
  acc::Accelerator accelerator(
      {.mixed_precision = setup.has("bf16") ? acc::MixedPrecision::bf16 : acc::MixedPrecision::no,
       .ddp = setup.ddp()});
  const int rank = accelerator.process_index();
  acc::set_seed(11);
  const auto net = make_net();
  auto [model, optimizer, loader] =
      accelerator.prepare(net, make_optimizer(setup, net->parameters()), make_loader());

  std::string lines;
  const auto steps = [&](acc::LocalSGD& local_sgd) {
    int batch = 0;
    for (auto& [x, y] : loader) {
      if (batch == setup.batches(rank)) break;
      const bool accumulates = setup.has("nosync") && batch % 2 == 0;
      std::optional<acc::NoSync> alone;
      if (accumulates) alone.emplace(model.ddp());
      if (setup.has("penalty")) x.requires_grad_();
      at::Tensor loss = at::cross_entropy_loss(model(x, setup.uses_aux(batch, rank)), y);
      if (setup.has("penalty")) loss = loss + gradient_penalty(loss, x);
      accelerator.backward(loss, setup.has("inputs") ? acc::BackwardOptions{.inputs = net->parameters()}
                                                     : acc::BackwardOptions());
      if (!accumulates) {
        optimizer.step();
        optimizer.zero_grad();
        local_sgd.step();
      }
      lines += loss_line(rank, batch++, loss);
    }
  };
  const auto run = [&] { acc::local_sgd(model, 8, setup.has("localsgd"), steps); };
  if (setup.has("join")) {
    acc::join_uneven_inputs({model}, run, !setup.has("effective"));
  } else {
    run();
  }
  std::ofstream(file + "." + std::to_string(rank)) << lines << state_lines(tensors_of(*net), rank);
}

// Two models over one encoder: one backward for both losses, or, with the word turns, one for each.
void train_two(const Setup& setup, const std::string& file) {
  acc::Accelerator accelerator({.ddp = setup.ddp()});
  const int rank = accelerator.process_index();
  acc::set_seed(11);
  const auto net = std::make_shared<NetImpl>(setup);
  const auto other = std::make_shared<NetImpl>(setup, net.get());
  std::vector<at::Tensor> parameters = net->parameters();
  for (const at::Tensor& parameter : other->parameters()) parameters.push_back(parameter);
  auto [first, second, optimizer, loader] =
      accelerator.prepare(net, other, make_optimizer(setup, parameters), make_loader());
  std::string lines;
  int batch = 0;
  for (auto& [x, y] : loader) {
    if (batch == setup.batches(rank)) break;
    const bool accumulates = setup.has("nosync") && batch % 2 == 0;
    std::list<acc::NoSync> alone;
    if (accumulates) alone.emplace_back(first.ddp()), alone.emplace_back(second.ddp());
    at::Tensor loss = at::cross_entropy_loss(first(x, setup.uses_aux(batch, rank)), y);
    if (setup.has("turns")) accelerator.backward(loss);
    const at::Tensor other_loss =
        at::cross_entropy_loss(second(x, setup.uses_aux(batch + 1, rank)), y).square();
    accelerator.backward(setup.has("turns") ? other_loss : loss + other_loss);
    if (!accumulates) {
      optimizer.step();
      optimizer.zero_grad();
    }
    lines += loss_line(rank, batch++, loss + other_loss);
  }
  std::vector<at::Tensor> state = tensors_of(*net);
  for (const at::Tensor& tensor : tensors_of(*other)) state.push_back(tensor);
  std::ofstream(file + "." + std::to_string(rank)) << lines << state_lines(state, rank);
}

void train(const std::string& name, const std::string& file) {
  const Setup setup(name);
  if (setup.has("shared")) {
    train_two(setup, file);
  } else if (setup.has("script")) {
    const std::filesystem::path script = std::string(std::getenv("ACC_SCRIPTS")) + "/" + name + "-net.pt";
    train(setup, file, [&] { return std::make_shared<acc::ScriptModuleImpl<>>(script); });
  } else if (setup.has("sparse")) {
    train(setup, file, [] { return std::make_shared<SparseNetImpl>(); });
  } else if (setup.has("complex")) {
    train(setup, file, [] { return std::make_shared<ComplexNetImpl>(); });
  } else {
    train(setup, file, [&] {
      const auto net = std::make_shared<NetImpl>(setup);
      if (setup.has("syncnorm")) acc::convert_sync_batchnorm(*net);
      return net;
    });
  }
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 3) return 2;
  const acc::PartialState joined;
  for (int i = 2; i < argc; ++i) train(argv[i], std::string(argv[1]) + "/" + argv[i]);
  return 0;
} catch (const acc::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
