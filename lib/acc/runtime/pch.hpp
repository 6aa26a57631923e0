// SPDX-License-Identifier: Apache-2.0
// Compiled once for the sources of this library: the headers of LibTorch that several of them need.
#pragma once

#include <torch/nn/module.h>

#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
