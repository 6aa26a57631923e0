// SPDX-License-Identifier: Apache-2.0
// What `acc notebook install` precompiles: a cell that includes one of these takes no time for it.
#pragma once

#include <torch/torch.h>

#include "acc/acc.hpp"
#include "acc/notebook.hpp"
