// SPDX-License-Identifier: Apache-2.0
// What the functions of the library throw.
#pragma once

#include "acc/base/error.hpp"
