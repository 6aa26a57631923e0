// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "acc/runtime/trainer/training_arguments.hpp"

namespace torch::nn {
class Module;
}
namespace torch::optim {
class Optimizer;
}

namespace acc::detail {

/// The optimizer that TrainingArguments::optim names, with the parameters of `module` that require gradients.
/// Those of biases and normalization layers are in a group without weight decay. Throws Error{usage} for
/// invalid optim_args.
std::shared_ptr<torch::optim::Optimizer> optimizer_of(const TrainingArguments& arguments,
                                                      const torch::nn::Module& module);

}  // namespace acc::detail
