// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/csrc/autograd/custom_function.h>

// Every torch::autograd::Function holds the address of LibTorch's deleteNode. Newer versions lack it, and
// without an address the dynamic linker would end the program before require_compiled_torch can say which
// version is needed. Weak, it is null there, and nobody gets as far as calling it.
#pragma weak _ZN5torch8autograd10deleteNodeEPNS0_4NodeE
