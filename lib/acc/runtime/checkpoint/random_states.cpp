// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/checkpoint/random_states.hpp"

#include <c10/util/Exception.h>

#include "acc/base/error.hpp"
#include "acc/runtime/random.hpp"

namespace acc {
namespace {

constexpr std::uint32_t kTwisterWords = 624;

// MT19937 as init_genrand seeds it, which Python's random and numpy both have.
PtList seeded_twister(std::uint32_t seed) {
  PtList words;
  std::uint32_t word = seed;
  for (std::uint32_t i = 1; i <= kTwisterWords; ++i) {
    words.emplace_back(std::int64_t{word});
    word = 1812433253U * (word ^ (word >> 30U)) + i;
  }
  return words;
}

}  // namespace

PtValue random_states(std::int64_t step) {
  const PtList words = seeded_twister(static_cast<std::uint32_t>(default_seed()));
  PtTuple of_python{words};
  of_python.items.emplace_back(std::int64_t{kTwisterWords});
  const auto position = std::int64_t{kTwisterWords};
  return PtDict{{"step", step},
                {"random_state", PtTuple{{3, of_python, {}}}},
                {"numpy_random_seed", PtTuple{{"MT19937", PtTuple{words}, position, 0, 0.0}}},
                {"torch_manual_seed", random_state()}};
}

std::optional<std::int64_t> load_random_states(const PtValue& states, const std::string& where) {
  const PtValue* generator = states.find("torch_manual_seed");
  const auto* bytes = generator != nullptr ? generator->get_if<at::Tensor>() : nullptr;
  try {
    if (bytes != nullptr) set_random_state(*bytes);
  } catch (const c10::Error&) {
    bytes = nullptr;
  }
  if (bytes == nullptr)
    throw Error(
        {.kind = ErrorKind::config, .what = "holds no state of LibTorch's generator", .where = where});
  const PtValue* step = states.find("step");
  const auto number = step != nullptr ? step->number() : std::nullopt;
  if (!number) return {};
  return static_cast<std::int64_t>(*number);
}

}  // namespace acc
