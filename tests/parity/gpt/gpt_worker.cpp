// SPDX-License-Identifier: Apache-2.0
// gpt_worker WEIGHTS TEXT STEPS: trains the GPT of the example from these weights, and prints the loss of
// each step. compare.py does the same in Python.
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/stack.h>

#include <cstdio>
#include <string>

#include "acc/accelerator.hpp"
#include "acc/checkpoint.hpp"
#include "acc/error.hpp"
#include "model.hpp"
#include "text.hpp"

namespace {

constexpr std::size_t kBatch = 4;

void train(const std::string& weights, const std::string& path, std::size_t steps) {
  acc::Accelerator accelerator;
  Gpt net(gpt_options("nano"));
  acc::load_state(*net, acc::read_weights(weights), weights);
  TextPieces pieces = load_text(path, net->options().context).train;
  auto [model, optimizer] = accelerator.prepare(net, gpt_optimizer(net, 1e-3, 0.1));
  const auto rank = static_cast<std::size_t>(accelerator.process_index());
  const auto size = static_cast<std::size_t>(accelerator.num_processes());
  for (std::size_t step = 0; step < steps; ++step) {
    std::vector<std::size_t> indices;
    for (std::size_t i = 0; i < kBatch; ++i) indices.push_back((step * size + rank) * kBatch + i);
    const auto [bytes, next] = pieces.get_batch(indices);
    optimizer.zero_grad();
    const at::Tensor loss = at::cross_entropy_loss(model(bytes).flatten(0, 1), next.flatten());
    accelerator.backward(loss);
    accelerator.clip_grad_norm_(net->parameters(), 1);
    optimizer.step();
    const double mean = accelerator.gather(loss.detach().view({1})).mean().item<double>();
    if (accelerator.is_main_process()) std::printf("%.9f\n", mean);
  }
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 4) throw acc::Error({.what = "gpt_worker WEIGHTS TEXT STEPS"});
  train(argv[1], argv[2], std::stoul(argv[3]));
} catch (const acc::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
