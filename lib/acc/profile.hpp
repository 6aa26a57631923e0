// SPDX-License-Identifier: Apache-2.0
// Profiles of a training, as traces.
#pragma once

#include "acc/runtime/profile.hpp"
