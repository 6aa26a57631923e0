// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/tensors/random.hpp"

#include <ATen/Context.h>
#include <ATen/core/Generator.h>
#include <torch/cuda.h>

#include <algorithm>
#include <mutex>

#include "acc/base/environment.hpp"
#include "acc/base/worker_env.hpp"

namespace acc {
namespace {

const at::Generator& default_generator(at::Device device = at::Device(at::kCPU)) {
  return at::globalContext().defaultGenerator(device);
}

std::size_t cuda_devices() {
  return static_cast<std::size_t>(torch::cuda::device_count());
}

at::Device cuda_device(std::size_t index) {
  return {at::kCUDA, static_cast<c10::DeviceIndex>(index)};
}

at::Tensor state_of(at::Generator generator) {
  const std::scoped_lock lock(generator.mutex());
  return generator.get_state();
}

void set_state_of(at::Generator generator, const at::Tensor& state) {
  const std::scoped_lock lock(generator.mutex());
  // LibTorch reads the state through a pointer: it must be contiguous.
  generator.set_state(state.clone());
}

void synchronize(const at::Generator& generator, const std::function<void(at::Tensor&)>& broadcast) {
  at::Tensor state = state_of(generator);
  broadcast(state);
  set_state_of(generator, state);
}

}  // namespace

void set_seed(std::uint64_t seed, const SeedOptions& options) {
  if (options.device_specific) {
    seed += static_cast<std::uint64_t>(read_worker_env(Environment::of_process()).rank);
  }
  at::manual_seed(seed);
  if (options.deterministic) at::globalContext().setDeterministicAlgorithms(true, /*warn_only=*/false);
}

std::uint64_t default_seed() {
  at::Generator generator = default_generator();
  const std::scoped_lock lock(generator.mutex());
  return generator.current_seed();
}

at::Tensor random_state(at::Device device) {
  return state_of(default_generator(device));
}

void set_random_state(const at::Tensor& state, at::Device device) {
  set_state_of(default_generator(device), state);
}

std::vector<at::Tensor> cuda_random_states() {
  std::vector<at::Tensor> states;
  for (std::size_t i = 0; i < cuda_devices(); ++i)
    states.push_back(state_of(default_generator(cuda_device(i))));
  return states;
}

void set_cuda_random_states(const std::vector<at::Tensor>& states) {
  const std::size_t present = std::min(states.size(), cuda_devices());
  for (std::size_t i = 0; i < present; ++i) set_state_of(default_generator(cuda_device(i)), states[i]);
}

void synchronize_rng_states(const std::vector<RngType>& types,
                            const std::function<void(at::Tensor&)>& broadcast) {
  for (const RngType type : types) {
    if (type == RngType::torch) synchronize(default_generator(), broadcast);
    if (type == RngType::cuda && at::hasCUDA())
      synchronize(default_generator(at::Device(at::kCUDA)), broadcast);
  }
}

}  // namespace acc
