// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace acc {

struct PtValue;
struct PtEntry;

using PtList = std::vector<PtValue>;
using PtDict = std::vector<PtEntry>;

struct PtTuple {
  std::vector<PtValue> items = {};
};

/// An object of a class that is no plain data: known by its name alone, nothing of it is run.
struct PtObject {
  std::string class_name = {};
};

/// What a file of Python's torch.save holds: plain data and tensors. std::monostate is Python's None; a set
/// is read as a list, bytes as a text.
struct PtValue {
  using Content = std::variant<std::monostate, bool, std::int64_t, double, std::string, at::Tensor, PtList,
                               PtTuple, PtDict, PtObject>;

  PtValue() = default;
  PtValue(bool value) : content(value) {}
  PtValue(int value) : content(std::int64_t{value}) {}
  PtValue(std::int64_t value) : content(value) {}
  PtValue(double value) : content(value) {}
  PtValue(std::string value) : content(std::move(value)) {}
  PtValue(const char* value) : content(std::string(value)) {}
  PtValue(at::Tensor value) : content(std::move(value)) {}
  PtValue(PtList value) : content(std::move(value)) {}
  PtValue(PtTuple value) : content(std::move(value)) {}
  PtValue(PtDict value) : content(std::move(value)) {}
  PtValue(PtObject value) : content(std::move(value)) {}

  /// The value, when it is a T.
  template <class T>
  const T* get_if() const {
    return std::get_if<T>(&content);
  }
  bool is_none() const { return std::holds_alternative<std::monostate>(content); }

  /// What a dict has under the key; null when it lacks it, or this is no dict.
  const PtValue* find(std::string_view key) const;
  const PtValue* find(std::int64_t key) const;

  /// The number of a whole number, a real, a truth value or a tensor of one element; absent for all else.
  std::optional<double> number() const;

  Content content = {};
};

struct PtEntry {
  PtValue key = {};
  PtValue value = {};
};

}  // namespace acc
