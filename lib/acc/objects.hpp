// SPDX-License-Identifier: Apache-2.0
// Sends values of any type between processes as JSON; needs nlohmann/json 3.11. Not part of acc/acc.hpp.
#pragma once

#include "acc/runtime/process/objects.hpp"
