// SPDX-License-Identifier: Apache-2.0
// Sends objects of any type that nlohmann/json can convert between processes; requires nlohmann/json 3.11.
// Not part of acc/acc.hpp.
#pragma once

#include "acc/base/cpp20.hpp"

#if !__has_include(<nlohmann/json.hpp>)
#error "acc/objects.hpp needs nlohmann/json 3.11: apt-get install nlohmann-json3-dev"
#endif

#include "acc/runtime/comm/objects.hpp"
