// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "acc/base/byte_reader.hpp"
#include "acc/runtime/comm/object_text.hpp"

namespace acc::detail {

/// How a worker's result travels to the caller of notebook_launcher, as bytes of this machine: what has an
/// ObjectText (numbers, enums, strings; any JSON value with acc/objects.hpp), tensors (tensor_result.hpp),
/// and vectors of these. Reading throws Error for bytes that were not written so.
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
    ByteReader reader(text, "notebook_launcher");
    std::vector<T> result;
    if constexpr (kPlain) {
      if (text.size() % sizeof(T) != 0) reader.fail();
      result.resize(text.size() / sizeof(T));
      if (!text.empty()) std::memcpy(result.data(), text.data(), text.size());
    } else {
      while (!reader.is_at_end()) result.push_back(ResultText<T>::read(reader.text()));
    }
    return result;
  }
};

}  // namespace acc::detail
