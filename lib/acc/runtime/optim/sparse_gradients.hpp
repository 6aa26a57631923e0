// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace torch::nn {
class Module;
}
namespace torch::optim {
class Optimizer;
}

namespace acc::detail {

// Of LibTorch's optimizers and acc's, some step no sparse gradients, and others none with weight_decay. Both
// functions throw Error{usage} naming the first parameter that `optimizer` could not step. Those of a
// program's own pass.

/// Before the training: of the trained parameters for which layers of `model` have sparse gradients.
void require_sparse_gradients_taken(const torch::optim::Optimizer& optimizer, const torch::nn::Module& model);

/// Before a step: of the parameters that have one now.
void require_sparse_gradients_taken(const torch::optim::Optimizer& optimizer);

/// Before a step: SGD with nesterov adds the momentum to a sparse gradient, which LibTorch cannot do with a
/// dense one, as it is saved. It becomes sparse.
void match_momentum_of_sparse_gradients(torch::optim::Optimizer& optimizer);

}  // namespace acc::detail
