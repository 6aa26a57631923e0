// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "acc/base/error.hpp"

namespace acc::test {

/// The text of the Error that `action` throws, or "no error".
template <typename Action>
std::string error_of(Action action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace acc::test
