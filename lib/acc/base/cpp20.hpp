// SPDX-License-Identifier: Apache-2.0
// Included first by each public header, so that in an older language the first error says what to do.
#pragma once

#if __cplusplus < 202002L
#error "acc needs C++20: set(CMAKE_CXX_STANDARD 20) in CMake, -std=c++20 on a command line"
#endif
