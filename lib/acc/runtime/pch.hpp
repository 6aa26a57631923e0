// SPDX-License-Identifier: Apache-2.0
// Precompiled for the sources of this library and the programs of apps/ and tests/: LibTorch headers that
// several of them need.
#pragma once

#include <torch/nn/cloneable.h>
#include <torch/optim/adamw.h>

#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
