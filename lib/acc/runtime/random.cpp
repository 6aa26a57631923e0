// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/random.hpp"

#include <ATen/Context.h>
#include <ATen/core/Generator.h>

#include <mutex>

#include "acc/base/environment.hpp"
#include "acc/base/worker_env.hpp"

namespace acc {
namespace {

const at::Generator& default_generator() {
  return at::globalContext().defaultGenerator(at::Device(at::kCPU));
}

void synchronize(at::Generator generator, const std::function<void(at::Tensor&)>& broadcast) {
  const auto locked = [&](auto act) {
    const std::scoped_lock lock(generator.mutex());
    return act();
  };
  at::Tensor state = locked([&] { return generator.get_state(); });
  broadcast(state);
  locked([&] { generator.set_state(state); });
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

at::Tensor random_state() {
  at::Generator generator = default_generator();
  const std::scoped_lock lock(generator.mutex());
  return generator.get_state();
}

void set_random_state(const at::Tensor& state) {
  at::Generator generator = default_generator();
  const std::scoped_lock lock(generator.mutex());
  // It is read through a pointer: its own memory, without gaps.
  generator.set_state(state.clone());
}

void synchronize_rng_states(const std::vector<RngType>& types,
                            const std::function<void(at::Tensor&)>& broadcast) {
  for (const RngType type : types) {
    if (type == RngType::torch) synchronize(default_generator(), broadcast);
    if (type == RngType::cuda && at::hasCUDA())
      synchronize(at::globalContext().defaultGenerator(at::Device(at::kCUDA)), broadcast);
  }
}

}  // namespace acc
