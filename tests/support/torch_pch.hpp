// SPDX-License-Identifier: Apache-2.0
// Compiled once for the tests of the runtime: what they include most. LibTorch's first: its CHECK gives way
// to Catch2's.
#pragma once

#include <torch/nn/module.h>

#include "support/catch.hpp"
