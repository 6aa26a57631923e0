// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "acc/runtime/comm/object_text.hpp"

namespace acc::detail {

/// How a worker's result travels to the caller of notebook_launcher, as bytes of this machine: what has an
/// ObjectText (numbers, enums, strings; any JSON value with acc/objects.hpp), tensors, and vectors of these.
template <class T>
struct ResultText;

template <class T>
concept SentAsResult = requires(const T& result, std::string_view text) {
  { ResultText<T>::write(result) } -> std::same_as<std::string>;
  { ResultText<T>::read(text) } -> std::same_as<T>;
};

template <HasText T>
struct ResultText<T> {
  static std::string write(const T& result) { return ObjectText<T>::write(result); }
  static T read(std::string_view text) { return ObjectText<T>::read(text); }
};

/// A tensor arrives on the CPU, contiguous and without its gradient.
template <>
struct ResultText<at::Tensor> {
  static std::string write(const at::Tensor& result);
  static at::Tensor read(std::string_view text);
};

/// Appends a text with its length, and takes the next such text off the front of `texts`.
void append_text(std::string& texts, std::string_view text);
std::string_view next_text(std::string_view& texts);

template <class T>
  requires SentAsResult<T> && (!HasText<std::vector<T>>)
struct ResultText<std::vector<T>> {
  static constexpr bool kPlain = std::is_arithmetic_v<T> && !std::is_same_v<T, bool>;

  static std::string write(const std::vector<T>& result) {
    if constexpr (kPlain) {
      return {reinterpret_cast<const char*>(result.data()), result.size() * sizeof(T)};
    } else {
      std::string texts;
      for (const T& one : result) append_text(texts, ResultText<T>::write(one));
      return texts;
    }
  }

  static std::vector<T> read(std::string_view text) {
    std::vector<T> result;
    if constexpr (kPlain) {
      result.resize(text.size() / sizeof(T));
      if (!text.empty()) std::memcpy(result.data(), text.data(), text.size());
    } else {
      while (!text.empty()) result.push_back(ResultText<T>::read(next_text(text)));
    }
    return result;
  }
};

}  // namespace acc::detail
