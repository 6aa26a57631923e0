// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/checkpoint/torch_types.hpp"

#include <algorithm>
#include <cctype>
#include <map>
#include <string>

#include "support/catch.hpp"

namespace torch_types_test {

using namespace acc;

TEST_CASE("torch_types: each type of torch.save is LibTorch's of the same name", "[checkpoint]") {
  // A copy, as another library has: its rows lie elsewhere.
  const auto dtypes = kTorchDtypes;
  const std::map<std::string_view, std::string_view> other_names = {{"float32", "Float"},
                                                                    {"float64", "Double"},
                                                                    {"float16", "Half"},
                                                                    {"int64", "Long"},
                                                                    {"int32", "Int"},
                                                                    {"int16", "Short"},
                                                                    {"int8", "Char"},
                                                                    {"uint8", "Byte"},
                                                                    {"complex64", "ComplexFloat"},
                                                                    {"complex128", "ComplexDouble"}};
  for (const TorchDtype& dtype : dtypes) {
    const at::ScalarType type = acc::detail::scalar_type_of(dtype);
    CHECK(c10::elementSize(type) == dtype.bytes);
    const auto other = other_names.find(dtype.name);
    std::string name = c10::toString(type);
    if (other == other_names.end()) std::ranges::transform(name, name.begin(), ::tolower);
    CHECK(name == (other == other_names.end() ? dtype.name : other->second));
  }
}

}  // namespace torch_types_test
