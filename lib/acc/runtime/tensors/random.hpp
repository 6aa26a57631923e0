// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <vector>

namespace acc {

/// What set_seed does besides.
struct SeedOptions {
  /// Adds the process's rank to the seed, so that each process draws different numbers.
  bool device_specific = false;
  /// Makes LibTorch use only deterministic algorithms, and throw if there is none for an operation.
  bool deterministic = false;
};

/// Seeds LibTorch's default generators, as torch.manual_seed. The same seed gives the same parameters in C++
/// and in Python.
void set_seed(std::uint64_t seed, const SeedOptions& options = {});

/// The seed of the default CPU generator.
std::uint64_t default_seed();

/// The state of a device's default generator, as bytes.
at::Tensor random_state(at::Device device = at::kCPU);

/// Sets a device's default generator to a state that random_state() or Python's torch.get_rng_state()
/// returned for such a device. Throws LibTorch's c10::Error for other bytes.
void set_random_state(const at::Tensor& state, at::Device device = at::kCPU);

/// The states of the default generators of all CUDA devices that this process sees, in order, as
/// torch.cuda.get_rng_state_all; empty if there are no devices.
std::vector<at::Tensor> cuda_random_states();

/// Sets the default generators of the CUDA devices, in order; surplus states are ignored. Throws LibTorch's
/// c10::Error for other bytes.
void set_cuda_random_states(const std::vector<at::Tensor>& states);

/// Generators that can be synchronized between processes.
enum class RngType {
  generator,  ///< those of loaders and samplers; always synchronized, since rank 0's seed determines their
              ///< orders
  torch,      ///< LibTorch's default CPU generator
  cuda,       ///< the default generator of the current CUDA device, if there is one
};

/// Together: sets each generator of `types` to rank 0's state. `broadcast` overwrites a tensor with that of
/// rank 0.
void synchronize_rng_states(const std::vector<RngType>& types,
                            const std::function<void(at::Tensor&)>& broadcast);

}  // namespace acc
