// SPDX-License-Identifier: Apache-2.0
// What workers of notebook_launcher return: the first byte says as what the others are read. They are a value
// of that type, which is written as it was read, or refused; so are tensors, without LibTorch, and how a job
// ended.
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "acc/notebook/job_outcome.hpp"
#include "acc/notebook/result_text.hpp"
#include "acc/runtime/tensors/tensor_bytes.hpp"
#include "fuzz/promise.hpp"

namespace {

using acc::detail::ResultText;

enum class Color : std::uint8_t { red, green };

template <class T>
void check_result(std::string_view text) {
  const auto result = fuzz::value_or_error([&] { return ResultText<T>::read(text); });
  if (!result) return;
  fuzz::require(ResultText<T>::write(*result) == text, "a result is written as it was read", text);
}

// Any byte but null is true.
void check_truths(std::string_view text) {
  const auto truths = fuzz::value_or_error([&] { return ResultText<std::vector<bool>>::read(text); });
  fuzz::value_or_error([&] { return ResultText<bool>::read(text); });
  if (!truths) return;
  const std::string again = ResultText<std::vector<bool>>::write(*truths);
  fuzz::require(ResultText<std::vector<bool>>::read(again) == *truths, "truths arrive", text);
}

void check_tensor(std::string_view text) {
  const auto tensor = fuzz::value_or_error([&] { return acc::detail::parse_tensor_bytes(text, "here"); });
  if (!tensor) return;
  std::size_t count = 1;
  for (const std::int64_t size : tensor->sizes) {
    fuzz::require(size >= 0, "a size is not negative");
    count *= static_cast<std::size_t>(size);
  }
  fuzz::require(count * tensor->element_size == tensor->elements.size(), "a tensor has its elements");
  fuzz::require(to_text(*tensor) == text, "a tensor is written as it was read", text);
}

void check_outcome(std::string_view text) {
  std::optional<acc::Error> failure;
  if (!fuzz::value_or_error([&] {
        failure = acc::detail::read_outcome(text);
        return true;
      }))
    return;
  const std::string again = acc::detail::text_of_outcome(failure);
  fuzz::require(!failure || again == text, "a failure is written as it was read", text);
  fuzz::require(failure || acc::detail::read_outcome(again) == std::nullopt, "a success is one", text);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr void (*kChecks[])(std::string_view) = {
      check_result<std::int64_t>,
      check_result<double>,
      check_result<Color>,
      check_result<std::string>,
      check_result<std::vector<float>>,
      check_result<std::vector<std::string>>,
      check_result<std::vector<std::vector<std::vector<double>>>>,
      check_truths,
      check_tensor,
      check_outcome,
  };
  std::string_view bytes = fuzz::text_of(data, size);
  const std::size_t kind = fuzz::Choices(bytes).below(std::size(kChecks));
  kChecks[kind](bytes);
  return 0;
}
