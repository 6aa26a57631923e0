// SPDX-License-Identifier: Apache-2.0
// Profiling, with traces for chrome://tracing and Perfetto.
#pragma once

#include "acc/base/cpp20.hpp"
#include "acc/runtime/accelerator/profile.hpp"
