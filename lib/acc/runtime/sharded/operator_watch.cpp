// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/sharded/operator_watch.hpp"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>
#include <ATen/ops/empty.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/library.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "acc/base/error.hpp"
#include "acc/runtime/sharded/unit.hpp"

namespace acc::detail {
namespace {

constexpr auto kKey = c10::DispatchKey::TESTING_ONLY_GenericMode;

// Whether the fallback has been called, for the probe.
thread_local bool was_called = false;

struct UnitInUse {
  Unit* unit = nullptr;
  bool is_written = false;
};

// Those of the operator that is about to run, each once.
thread_local std::vector<UnitInUse> units_in_use;

auto find_in_use(const Unit& unit) {
  return std::ranges::find(units_in_use, &unit, &UnitInUse::unit);
}

void add_unit_of(const at::Tensor& tensor, bool is_written) {
  Unit* unit = unit_of(tensor);
  if (unit == nullptr || !unit->on_use) return;
  const auto known = find_in_use(*unit);
  if (known == units_in_use.end()) {
    units_in_use.push_back({.unit = unit, .is_written = is_written});
  } else {
    known->is_written = known->is_written || is_written;
  }
}

void add_units_of(const c10::IValue& value, bool is_written) {
  if (value.isTensor()) {
    add_unit_of(value.toTensor(), is_written);
  } else if (value.isTensorList()) {
    for (const at::Tensor& tensor : value.toTensorVector()) add_unit_of(tensor, is_written);
  } else if (value.isList()) {
    for (const c10::IValue& item : value.toListRef()) add_units_of(item, is_written);
  }
}

// Whether an operator, such as `to` and `contiguous`, calls others to make a view or a copy.
bool may_copy(const c10::OperatorHandle& op) {
  return returns_views(op) && op.hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd);
}

// Whether an operator is about a tensor's place in autograd's graph alone.
bool is_about_graph(const c10::OperatorHandle& op) {
  constexpr std::array<std::string_view, 3> kNames{"aten::requires_grad_", "aten::retain_grad",
                                                   "aten::detach_"};
  return std::ranges::find(kNames, op.schema().name()) != kNames.end();
}

void before_operator(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  was_called = true;
  // The operators that it calls are watched in its place.
  if (may_copy(op) || is_about_graph(op)) {
    op.redispatchBoxed(keys & c10::DispatchKeySet(c10::DispatchKeySet::FULL_AFTER, kKey), stack);
    return;
  }
  // Also for the operators that this one consists of, which take the same tensors.
  const c10::impl::ExcludeDispatchKeyGuard unwatched(kKey);
  const std::vector<c10::Argument>& arguments = op.schema().arguments();
  const std::size_t count = arguments.size();
  // All of them before the first is told: it needs to know with which others it is used.
  units_in_use.clear();
  for (std::size_t i = 0; i < count; ++i) {
    const c10::AliasInfo* alias = arguments[i].alias_info();
    add_units_of((*stack)[stack->size() - count + i], alias != nullptr && alias->isWrite());
  }
  for (const UnitInUse& one : units_in_use) one.unit->on_use(*one.unit, op);
  op.callBoxed(stack);
}

// The number of the key is compiled in; in the LibTorch that was loaded it must be the same key.
bool probe() {
  if (std::string_view(c10::toString(kKey)) != "TESTING_ONLY_GenericMode") return false;
  was_called = false;
  const c10::impl::IncludeDispatchKeyGuard on(kKey);
  at::empty({0});
  return was_called;
}

// Registers the fallback, for programs that need it alone.
void require_fallback() {
  static const bool works = [] {
    static torch::Library library(torch::Library::IMPL, "_", kKey, __FILE__, __LINE__);
    library.fallback(torch::CppFunction::makeFromBoxedFunction<&before_operator>());
    return probe();
  }();
  if (works) return;
  throw Error({.kind = ErrorKind::system,
               .what = "this LibTorch does not let acc see operators, so parameters cannot be freed between "
                       "their uses",
               .where = "FSDP",
               .hint = "shard without freeing them: reshard_after_forward = false"});
}

}  // namespace

bool is_in_use(const Unit& unit) {
  return find_in_use(unit) != units_in_use.end();
}

bool is_written(const Unit& unit) {
  const auto known = find_in_use(unit);
  return known != units_in_use.end() && known->is_written;
}

bool returns_views(const c10::OperatorHandle& op) {
  const auto& results = op.schema().returns();
  return !results.empty() && std::ranges::all_of(results, [](const c10::Argument& result) {
    return result.alias_info() != nullptr && !result.alias_info()->isWrite();
  });
}

void watch_operators(bool on) {
  if (on) {
    try {
      require_fallback();
    } catch (const c10::Error& error) {
      throw Error({.kind = ErrorKind::system, .what = error.what_without_backtrace(), .where = "FSDP"});
    }
  }
  c10::impl::tls_set_dispatch_key_included(kKey, on);
}

UnwatchedOperators::UnwatchedOperators() : was_excluded_(c10::impl::tls_is_dispatch_key_excluded(kKey)) {
  c10::impl::tls_set_dispatch_key_excluded(kKey, true);
}

UnwatchedOperators::~UnwatchedOperators() {
  c10::impl::tls_set_dispatch_key_excluded(kKey, was_excluded_);
}

}  // namespace acc::detail
