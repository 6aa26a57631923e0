// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/ArrayRef.h>
#include <c10/util/OptionalArrayRef.h>

#include <functional>
#include <ranges>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "acc/runtime/recomputation/checkpoint_switch.hpp"
#include "acc/runtime/recomputation/recomputation.hpp"
#include "acc/runtime/tensors/nested_tensors.hpp"

namespace acc {

namespace detail {

/// The tensors of a structure, also undefined ones, which are left undefined in it.
template <class Structure>
std::vector<at::Tensor> take_tensors(Structure& structure) {
  std::vector<at::Tensor> tensors;
  for_each_tensor_place(structure, [&](at::Tensor& tensor) { tensors.push_back(std::exchange(tensor, {})); });
  return tensors;
}

/// Whether copies of a value refer to memory of somebody else, who may free it before backward.
template <class Value>
inline constexpr bool kIsView = std::ranges::view<Value>;
template <class Element>
inline constexpr bool kIsView<c10::ArrayRef<Element>> = true;
template <class Element>
inline constexpr bool kIsView<c10::OptionalArrayRef<Element>> = true;

/// A copy of an argument, in the value category of the argument.
template <class Input>
using CopyOf =
    std::conditional_t<std::is_lvalue_reference_v<Input>, std::decay_t<Input>&, std::decay_t<Input>&&>;

/// Calls a function, or the forward of a module that is given by its holder or a pointer.
template <class Function, class... Inputs>
decltype(auto) call(Function&& function, Inputs&&... inputs) {
  if constexpr (requires { function->forward(std::forward<Inputs>(inputs)...); }) {
    return function->forward(std::forward<Inputs>(inputs)...);
  } else {
    return std::invoke(std::forward<Function>(function), std::forward<Inputs>(inputs)...);
  }
}

/// Puts back what take_tensors took.
template <class Structure>
void put_tensors(Structure& structure, const std::vector<at::Tensor>& tensors) {
  auto next = tensors.begin();
  for_each_tensor_place(structure, [&](at::Tensor& tensor) { tensor = *next++; });
}

}  // namespace detail

/// Calls `function(inputs...)` and returns its result, but keeps only the inputs for backward: what the
/// operators inside would have saved is computed in backward, by calling the function again. As Python's
/// torch.utils.checkpoint with use_reentrant=False; a training takes less memory and a third more time.
///
///     for (auto& block : blocks) x = acc::checkpoint(block, x);
///
/// The function is anything that can be called, or a module, by its holder, shared_ptr or pointer. It and the
/// inputs are copied; of a module, the holder or pointer. The second time the function sees the same inputs,
/// random numbers of the default generators, and autocast; what it captures by reference, and `this`, must
/// live until backward. Inputs are what for_each_tensor takes, and anything else that can be copied, and the
/// result is any value. Calls may be nested. It is a plain call without gradients, as in evaluation, and in a
/// prepared model if AcceleratorOptions::activation_checkpointing is false. Buffers that the function
/// updates, as BatchNorm's, are updated in both passes, as in Python.
///
/// Throws Error{usage} when the function changes an input in place, and in backward when it does not save
/// tensors of the same shapes again, or when one of them was changed in place: by the function after an
/// operator saved it, or, if the function only reads it, by anybody since its first call.
template <class Function, class... Inputs>
auto checkpoint(Function&& function, Inputs&&... inputs) {
  using Arguments = std::tuple<std::decay_t<Inputs>...>;
  using Result = decltype(detail::call(std::forward<Function>(function), std::forward<Inputs>(inputs)...));
  static_assert(!std::is_void_v<Result>,
                "the function returns what it computes: what it writes elsewhere would be written twice");
  static_assert(!std::is_nothrow_invocable_v<Function, Inputs...>,
                "the second call ends by an exception, as soon as it has computed what is needed");
  static_assert(!(detail::kIsView<std::decay_t<Inputs>> || ...),
                "inputs are kept: pass what has the elements, as a std::vector, not a view of it");
  if (!detail::computes_again())
    return std::decay_t<Result>(
        detail::call(std::forward<Function>(function), std::forward<Inputs>(inputs)...));
  Arguments arguments(inputs...);
  std::vector<at::Tensor> tensors = detail::take_tensors(arguments);
  auto replay = [copy = std::decay_t<Function>(function), arguments](const std::vector<at::Tensor>& saved) {
    Arguments again = arguments;
    detail::put_tensors(again, saved);
    std::decay_t<Function> once = copy;  // which may change as it is called
    std::apply(
        [&](auto&... parts) { (void)detail::call(once, static_cast<detail::CopyOf<Inputs>>(parts)...); },
        again);
  };
  const detail::FirstPass pass(std::move(tensors), std::move(replay));
  std::decay_t<Result> result =
      detail::call(std::forward<Function>(function), std::forward<Inputs>(inputs)...);
  pass.require_unchanged_inputs();
  return result;
}

}  // namespace acc
