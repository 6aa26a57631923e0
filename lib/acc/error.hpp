// SPDX-License-Identifier: Apache-2.0
// The exception of the library.
#pragma once

#include "acc/base/cpp20.hpp"
#include "acc/base/error.hpp"
