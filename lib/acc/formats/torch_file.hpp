// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "acc/formats/pickle_reader.hpp"
#include "acc/formats/zip_archive.hpp"

namespace acc {

/// An element type as named by Python's torch.save: by its storage class or, for newer types without one, as
/// `torch.<name>` with an UntypedStorage.
struct TorchDtype {
  std::string_view name;
  std::string_view storage;
  std::size_t bytes;
};

inline constexpr std::array<TorchDtype, 20> kTorchDtypes = {{
    {"float32", "FloatStorage", 4},
    {"float64", "DoubleStorage", 8},
    {"float16", "HalfStorage", 2},
    {"bfloat16", "BFloat16Storage", 2},
    {"int64", "LongStorage", 8},
    {"int32", "IntStorage", 4},
    {"int16", "ShortStorage", 2},
    {"int8", "CharStorage", 1},
    {"uint8", "ByteStorage", 1},
    {"bool", "BoolStorage", 1},
    {"complex64", "ComplexFloatStorage", 8},
    {"complex128", "ComplexDoubleStorage", 16},
    {"uint16", "", 2},
    {"uint32", "", 4},
    {"uint64", "", 8},
    {"float8_e4m3fn", "", 1},
    {"float8_e5m2", "", 1},
    {"float8_e8m0fnu", "", 1},
    {"float8_e4m3fnuz", "", 1},
    {"float8_e5m2fnuz", "", 1},
}};

/// A tensor in a file of torch.save.
struct StoredTensor {
  const TorchDtype* dtype = nullptr;
  std::vector<std::int64_t> sizes = {};
  std::vector<std::int64_t> strides = {};
  /// From its first element to its last, gaps included; empty when it has no elements.
  std::string_view bytes = {};
};

/// A file of torch.save (PyTorch 1.6 or later) that is in memory. No code in it is executed, and every offset
/// and size is checked against the size of the file.
class TorchFile {
 public:
  /// Refers to `bytes`. Throws Error{config} saying what is wrong with them.
  explicit TorchFile(std::string_view bytes);
  TorchFile(const TorchFile&) = delete;
  TorchFile& operator=(const TorchFile&) = delete;

  /// The saved value.
  const PickleValue& root() const { return *root_; }
  /// The size of its pickle, without the tensors' data.
  std::size_t root_bytes() const { return root_bytes_; }

  /// The tensor that `value` describes; nullopt when it is not a tensor. Throws Error{config} when the tensor
  /// does not fit its storage or is of an unsupported kind: sparse, quantized, conjugated.
  std::optional<StoredTensor> tensor(const PickleValue& value) const;

 private:
  const std::string_view* find(std::string_view name) const;
  StoredTensor rebuild(const std::string& function, const PickleValue* arguments, int depth) const;
  StoredTensor view(const std::vector<const PickleValue*>& items, const TorchDtype* dtype,
                    const PickleValue* metadata) const;

  ZipEntries entries_ = {};
  std::string_view prefix_ = {};
  PickleReader reader_ = PickleReader::of_any_class();
  const PickleValue* root_ = nullptr;
  std::size_t root_bytes_ = 0;
};

}  // namespace acc
