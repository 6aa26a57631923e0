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

// accelerate writes the key only where there is a device.
constexpr const char* kOfCudaDevices = "torch_cuda_manual_seed";

std::vector<at::Tensor> tensors_of(const PtValue& value) {
  std::vector<at::Tensor> tensors;
  const auto* list = value.get_if<PtList>();
  if (list == nullptr) return tensors;
  for (const PtValue& item : *list) {
    if (const auto* tensor = item.get_if<at::Tensor>()) tensors.push_back(*tensor);
  }
  return tensors;
}

}  // namespace

PtValue random_states(std::int64_t step) {
  const PtList words = seeded_twister(static_cast<std::uint32_t>(default_seed()));
  PtTuple of_python{words};
  of_python.items.emplace_back(std::int64_t{kTwisterWords});
  const auto position = std::int64_t{kTwisterWords};
  PtDict states{{"step", step},
                {"random_state", PtTuple{{3, of_python, {}}}},
                {"numpy_random_seed", PtTuple{{"MT19937", PtTuple{words}, position, 0, 0.0}}},
                {"torch_manual_seed", random_state()}};
  PtList of_devices;
  for (at::Tensor& state : cuda_random_states()) of_devices.emplace_back(std::move(state));
  if (!of_devices.empty()) states.push_back({kOfCudaDevices, std::move(of_devices)});
  return states;
}

std::optional<std::int64_t> load_random_states(const PtValue& states, const std::string& where) {
  const PtValue* generator = states.find("torch_manual_seed");
  const auto* bytes = generator != nullptr ? generator->get_if<at::Tensor>() : nullptr;
  const PtValue* of_devices = states.find(kOfCudaDevices);
  try {
    if (bytes != nullptr) set_random_state(*bytes);
    if (of_devices != nullptr) set_cuda_random_states(tensors_of(*of_devices));
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
