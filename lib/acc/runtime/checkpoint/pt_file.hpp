// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace acc {

struct PtValue;
struct PtEntry;

using PtList = std::vector<PtValue>;  ///< Python's list.
using PtDict = std::vector<PtEntry>;  ///< Python's dict, in the order of its entries.

/// Python's tuple.
struct PtTuple {
  std::vector<PtValue> items;  ///< In order.
};

/// An object of any other class. Only the name of the class is read; nothing is executed.
struct PtObject {
  std::string class_name = {};  ///< The class with its module, as in `collections.OrderedDict`.
};

/// The content of a file of Python's torch.save: plain data and tensors. std::monostate is Python's None; an
/// integer is an std::uint64_t only where an std::int64_t cannot hold it; a set is read as a list, bytes as a
/// string, an OrderedDict or a defaultdict as a dict.
struct PtValue {
  /// One of the types that a value may have; monostate is None.
  using Content = std::variant<std::monostate, bool, std::int64_t, double, std::string, at::Tensor, PtList,
                               PtTuple, PtDict, PtObject, std::uint64_t>;

  PtValue();
  PtValue(bool value);
  PtValue(int value);
  PtValue(std::int64_t value);
  PtValue(double value);
  PtValue(std::string value);
  PtValue(const char* value);
  PtValue(at::Tensor value);
  PtValue(PtList value);
  PtValue(PtTuple value);
  PtValue(PtDict value);
  PtValue(PtObject value);

  /// The value, when it is a T.
  template <class T>
  const T* get_if() const {
    return std::get_if<T>(&content);
  }
  bool is_none() const;  ///< Whether it is Python's None.

  /// The value of a dict for the key; null when it is missing, or this is not a dict.
  const PtValue* find(std::string_view key) const;
  const PtValue* find(std::int64_t key) const;

  /// The value of an integer, a real number, a bool or a tensor of one element; absent for all else.
  std::optional<double> number() const;

  Content content;  ///< The value.
};

/// An entry of a dict.
struct PtEntry {
  PtValue key = {};    ///< A text or number, as a rule.
  PtValue value = {};  ///< Any value.
};

// Not in the class: Clang makes the members of its vectors there, which need a whole PtEntry.
// NOLINTNEXTLINE(readability-redundant-inline-specifier): outside of its class a default is not inline.
inline PtValue::PtValue() = default;
inline PtValue::PtValue(bool value) : content(value) {}
inline PtValue::PtValue(int value) : content(std::int64_t{value}) {}
inline PtValue::PtValue(std::int64_t value) : content(value) {}
inline PtValue::PtValue(double value) : content(value) {}
inline PtValue::PtValue(std::string value) : content(std::move(value)) {}
inline PtValue::PtValue(const char* value) : content(std::string(value)) {}
inline PtValue::PtValue(at::Tensor value) : content(std::move(value)) {}
inline PtValue::PtValue(PtList value) : content(std::move(value)) {}
inline PtValue::PtValue(PtTuple value) : content(std::move(value)) {}
inline PtValue::PtValue(PtDict value) : content(std::move(value)) {}
inline PtValue::PtValue(PtObject value) : content(std::move(value)) {}
inline bool PtValue::is_none() const {
  return std::holds_alternative<std::monostate>(content);
}

/// Reads a file that torch.save of PyTorch 1.6 or later wrote; tensors of any device are loaded to the CPU.
/// The tensors map the file into memory and read it when they are used; writing to them does not change the
/// file. Nothing in a file is executed, and nothing outside of it is read. Throws Error{system} naming the
/// file when it cannot be opened, Error{config} when it is damaged, of an older PyTorch, or has tensors of a
/// type that acc does not support.
PtValue read_pt_file(const std::filesystem::path& file);

/// Atomically replaces `file` with one that Python's torch.load reads, also with weights_only and mmap.
/// Tensors of any device and stride, each with a storage of its own on the CPU; a string that is not UTF-8 is
/// written as bytes. Throws Error{usage} for a PtObject or an element type that torch.save lacks,
/// Error{system} when the file cannot be written; the old one is then untouched.
void write_pt_file(const std::filesystem::path& file, const PtValue& value);

}  // namespace acc
