// SPDX-License-Identifier: Apache-2.0
// Models that were made in Python.
#pragma once

#include "acc/base/cpp20.hpp"
#include "acc/runtime/modules/compiled_model.hpp"
#include "acc/runtime/modules/script_module.hpp"
