// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/csrc/autograd/custom_function.h>

namespace torch::autograd {

/// Every torch::autograd::Function holds this one's address. Newer versions of LibTorch lack it, and without
/// an address the dynamic linker would end the program before require_compiled_torch can say which version is
/// needed. Weak, it is null there, and nobody gets as far as calling it.
[[gnu::weak]] void deleteNode(Node* function);

}  // namespace torch::autograd
