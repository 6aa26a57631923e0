// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/util/ArrayRef.h>

#include <cstddef>
#include <functional>

namespace acc {

/// Called while an exception of reading samples is handled: throws Error with its text and the sample at
/// fault, which is found by reading them one after the other. The exception is nested in the Error; what is
/// no std::exception is thrown again as it is.
[[noreturn]] void throw_naming_sample(c10::ArrayRef<std::size_t> indices,
                                      const std::function<void(std::size_t)>& read_one);

/// The same where the sample is known.
[[noreturn]] void throw_naming_sample(std::size_t index);

}  // namespace acc
