// SPDX-License-Identifier: Apache-2.0
// Precompiled for the sources of this library: LibTorch headers that several of them need.
#pragma once

#include <torch/nn/module.h>

#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
