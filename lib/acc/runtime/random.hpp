// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <vector>

namespace acc {

struct SeedOptions {
  /// Adds the process's rank to the seed: each process draws other numbers.
  bool device_specific = false;
  /// From now on LibTorch computes only by algorithms that give the same result each time, and throws where
  /// it has none.
  bool deterministic = false;
};

/// Seeds LibTorch's default generators, as torch.manual_seed: the same seed gives the same parameters in C++
/// and in Python.
void set_seed(std::uint64_t seed, const SeedOptions& options = {});

/// The seed of the default CPU generator.
std::uint64_t default_seed();

/// The state of the default CPU generator as bytes; equal states give equal numbers.
at::Tensor random_state();

/// Sets the default CPU generator to what random_state() or Python's torch.get_rng_state() gave. Throws
/// LibTorch's c10::Error for other bytes.
void set_random_state(const at::Tensor& state);

/// The states of the default generators of all CUDA devices that this process sees, in their order, as
/// torch.cuda.get_rng_state_all gives them; none where there is no device.
std::vector<at::Tensor> cuda_random_states();

/// Sets the default generators of the first CUDA devices; states of further devices are ignored.
/// Throws LibTorch's c10::Error for other bytes.
void set_cuda_random_states(const std::vector<at::Tensor>& states);

/// Generators that can be synchronized between processes.
enum class RngType {
  generator,  ///< those of loaders and samplers: always the same, since their orders follow from one seed
  torch,      ///< LibTorch's default CPU generator
  cuda,       ///< the default generator of the current CUDA device, where there is one
};

/// Together: each generator of `types` takes rank 0's state. `broadcast` overwrites a tensor with rank 0's.
void synchronize_rng_states(const std::vector<RngType>& types,
                            const std::function<void(at::Tensor&)>& broadcast);

}  // namespace acc
