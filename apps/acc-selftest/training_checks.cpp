// SPDX-License-Identifier: Apache-2.0
#include <ATen/ops/cat.h>
#include <ATen/ops/mse_loss.h>
#include <ATen/ops/randn.h>
#include <fmt/format.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>

#include <memory>

#include "acc/runtime/data/samplers.hpp"
#include "acc/runtime/data/tensor_batches.hpp"
#include "checks.hpp"

namespace acc::selftest {
namespace {

constexpr std::size_t kBatchSize = 8;
constexpr int kEpochs = 3;
constexpr double kLearningRate = 0.1;
constexpr double kTolerance = 1e-6;

struct RegressorImpl : torch::nn::Module {
  RegressorImpl()
      : hidden(register_module("hidden", torch::nn::Linear(2, 8))),
        out(register_module("out", torch::nn::Linear(8, 1))) {}
  at::Tensor forward(const at::Tensor& x) {
    const at::Tensor y = hidden->forward(x);
    computed_in = y.scalar_type();
    return out->forward(y.tanh());
  }

  at::ScalarType computed_in = at::kFloat;
  torch::nn::Linear hidden;
  torch::nn::Linear out;
};
TORCH_MODULE(Regressor);

using Points = DataLoader<TensorDataset<2>>;

// The same points on every process.
TensorDataset<2> make_points(int num_processes) {
  set_seed(1);
  const at::Tensor x = at::randn({64 * num_processes, 2});
  const at::Tensor y = x.sum(1, true).mul(0.7).sub(0.3);
  return TensorDataset<2>(x, y);
}

Points load_points(std::size_t batch_size, int num_processes) {
  return Points(make_points(num_processes), {.batch_size = batch_size, .shuffle = true, .seed = 7});
}

// Reads all points, in the same order, and says so: a loader that is not prepared is warned of.
Points load_points_alone(std::size_t batch_size, int num_processes) {
  const TensorDataset<2> points = make_points(num_processes);
  const SamplerShare all{.process_index = 0, .num_processes = 1};
  return Points(points, {.batch_size = batch_size,
                         .seed = 7,
                         .sampler = std::make_shared<DistributedSampler>(
                             points.size(), DistributedSamplerOptions{.share = all})});
}

Regressor make_regressor() {
  set_seed(2);
  return Regressor();
}

at::Tensor parameters_of(const RegressorImpl& regressor) {
  std::vector<at::Tensor> flat;
  for (const at::Tensor& parameter : regressor.parameters()) flat.push_back(parameter.detach().reshape({-1}));
  return at::cat(flat);
}

struct Trained {
  at::Tensor parameters = {};
  at::ScalarType computed_in = at::kFloat;
  double first_loss = 0;
  double last_loss = 0;
};

// `batch_size` is that of this process, or of all processes together if batches are split.
Trained train(Accelerator& accelerator, std::size_t batch_size) {
  Regressor net = make_regressor();
  torch::optim::SGD sgd(net->parameters(), torch::optim::SGDOptions(kLearningRate));
  auto [model, optimizer, loader] =
      accelerator.prepare(net, std::move(sgd), load_points(batch_size, accelerator.num_processes()));
  Trained result;
  for (int epoch = 0; epoch < kEpochs; ++epoch) {
    double sum = 0;
    for (auto& [x, y] : loader) {
      optimizer.zero_grad();
      const at::Tensor loss = at::mse_loss(model(x), y);
      accelerator.backward(loss);
      optimizer.step();
      sum += loss.item<double>();
    }
    if (epoch == 0) result.first_loss = sum;
    result.last_loss = sum;
  }
  result.parameters = parameters_of(*net);
  result.computed_in = net->computed_in;
  return result;
}

// The result of the same training with plain LibTorch on one process, with a step after `every` batches and
// the last one.
at::Tensor train_alone(std::size_t batch_size, int num_processes, at::Device device, int epochs,
                       std::size_t every = 1) {
  Regressor net = make_regressor();
  net->to(device);
  torch::optim::SGD sgd(net->parameters(), torch::optim::SGDOptions(kLearningRate));
  Points loader = load_points_alone(batch_size, num_processes);
  for (int epoch = 0; epoch < epochs; ++epoch) {
    std::size_t batches = 0;
    for (auto& [x, y] : loader) {
      at::mse_loss(net->forward(x.to(device)), y.to(device)).div(static_cast<double>(every)).backward();
      if (++batches % every != 0 && batches != loader.size()) continue;
      sgd.step();
      sgd.zero_grad();
    }
  }
  return parameters_of(*net);
}

Failure check_half_training(Accelerator& accelerator, at::ScalarType type) {
  const Trained trained = train(accelerator, kBatchSize);
  if (trained.computed_in != type) return fmt::format("computed in {}", c10::toString(trained.computed_in));
  if (!accelerator.broadcast(trained.parameters).equal(trained.parameters))
    return "the parameters drifted apart";
  if (trained.last_loss < trained.first_loss) return {};
  return fmt::format("the loss did not fall: {:.3g} to {:.3g}", trained.first_loss, trained.last_loss);
}

}  // namespace

Failure check_training(Accelerator& plain) {
  const std::size_t all = kBatchSize * static_cast<std::size_t>(plain.num_processes());
  const at::Tensor alone = train_alone(all, plain.num_processes(), plain.device(), kEpochs);
  for (const bool split : {false, true}) {
    Accelerator accelerator({.mixed_precision = MixedPrecision::no, .split_batches = split});
    const at::Tensor together = train(accelerator, split ? all : kBatchSize).parameters;
    if (together.allclose(alone, kTolerance, kTolerance)) continue;
    return fmt::format("{}differs by {:.3g} from one process with the whole batch",
                       split ? "split batches: " : "", together.sub(alone).abs().max().item<double>());
  }
  return {};
}

Failure check_bf16_training(Accelerator& accelerator) {
  return check_half_training(accelerator, at::kBFloat16);
}

Failure check_fp16_training(Accelerator& accelerator) {
  return check_half_training(accelerator, at::kHalf);
}

Failure check_accumulation(Accelerator& plain) {
  Accelerator accelerator({.mixed_precision = MixedPrecision::no, .gradient_accumulation_steps = 3});
  Regressor net = make_regressor();
  torch::optim::SGD sgd(net->parameters(), torch::optim::SGDOptions(kLearningRate));
  auto [model, optimizer, loader] =
      accelerator.prepare(net, std::move(sgd), load_points(kBatchSize, accelerator.num_processes()));
  // The launcher's variable takes precedence over the 3.
  const auto every = static_cast<std::size_t>(accelerator.gradient_accumulation_steps());
  std::size_t batches = 0;
  for (auto& [x, y] : loader) {
    const auto batch = accelerator.accumulate(model);
    const at::Tensor before = parameters_of(*net).clone();
    accelerator.backward(at::mse_loss(model(x), y));
    optimizer.step();
    optimizer.zero_grad();
    const bool due = ++batches % every == 0 || batches == loader.size();
    if (parameters_of(*net).equal(before) == due)
      return fmt::format("{} after batch {}", due ? "no step" : "a step", batches);
  }
  const at::Tensor trained = parameters_of(*net);
  if (!plain.broadcast(trained).equal(trained)) return "the parameters drifted apart";
  const std::size_t all = kBatchSize * static_cast<std::size_t>(plain.num_processes());
  const at::Tensor alone = train_alone(all, plain.num_processes(), plain.device(), /*epochs=*/1, every);
  if (trained.allclose(alone, kTolerance, kTolerance)) return {};
  return fmt::format("differs by {:.3g} from one process with the whole batches",
                     trained.sub(alone).abs().max().item<double>());
}

}  // namespace acc::selftest
