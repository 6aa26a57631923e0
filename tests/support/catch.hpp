// SPDX-License-Identifier: Apache-2.0
// Catch2, 2.13 (Debian 12) or 3: tests include this and nothing of Catch2's own.
#pragma once

#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
#else
#include <catch2/catch.hpp>
#endif
