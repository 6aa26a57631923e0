// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/ScalarType.h>

#include <algorithm>
#include <array>
#include <cstddef>

#include "acc/formats/torch_file.hpp"

namespace acc::detail {

/// LibTorch's names of the types in kTorchDtypes, in the same order.
inline constexpr std::array<at::ScalarType, kTorchDtypes.size()> kScalarTypes = {
    at::kFloat,
    at::kDouble,
    at::kHalf,
    at::kBFloat16,
    at::kLong,
    at::kInt,
    at::kShort,
    at::kChar,
    at::kByte,
    at::kBool,
    at::kComplexFloat,
    at::kComplexDouble,
    at::kUInt16,
    at::kUInt32,
    at::kUInt64,
    at::kFloat8_e4m3fn,
    at::kFloat8_e5m2,
    at::kFloat8_e8m0fnu,
    at::kFloat8_e4m3fnuz,
    at::kFloat8_e5m2fnuz,
};

/// LibTorch's name of one of kTorchDtypes. By its name: a program whose symbols are hidden has rows of its
/// own.
inline at::ScalarType scalar_type_of(const TorchDtype& dtype) {
  const auto* row = std::ranges::find(kTorchDtypes, dtype.name, &TorchDtype::name);
  return kScalarTypes.at(static_cast<std::size_t>(row - kTorchDtypes.begin()));
}

}  // namespace acc::detail
