// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/tensors/meta_device.hpp"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>
#include <ATen/ops/empty.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/library.h>

#include "acc/base/error.hpp"

namespace acc {
namespace {

// A key that LibTorch has for tests of such fallbacks, and does not use itself.
constexpr auto kKey = c10::DispatchKey::TESTING_ONLY_GenericWrapper;

void create_on_meta(const c10::OperatorHandle& op, c10::DispatchKeySet /*keys*/, torch::jit::Stack* stack) {
  const auto& arguments = op.schema().arguments();
  const std::size_t first = stack->size() - arguments.size();
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    c10::IValue& value = (*stack)[first + i];
    // Only operators that create tensors may be told a device.
    if (arguments[i].name() == "device" && value.isNone()) value = c10::Device(c10::kMeta);
  }
  const c10::impl::ExcludeDispatchKeyGuard once(kKey);
  op.callBoxed(stack);
}

void require_fallback() {
  static const bool works = [] {
    static torch::Library library(torch::Library::IMPL, "_", kKey, __FILE__, __LINE__);
    library.fallback(torch::CppFunction::makeFromBoxedFunction<&create_on_meta>());
    const c10::impl::IncludeDispatchKeyGuard on(kKey);
    return at::empty({0}).is_meta();
  }();
  if (!works) {
    throw Error({.kind = ErrorKind::system,
                 .what = "this LibTorch does not let acc see which tensors are created",
                 .where = "MetaDevice",
                 .hint = "use a LibTorch that acc is tested with"});
  }
}

}  // namespace

MetaDevice::MetaDevice() : was_on_(c10::impl::tls_is_dispatch_key_included(kKey)) {
  require_fallback();
  c10::impl::tls_set_dispatch_key_included(kKey, true);
}

MetaDevice::~MetaDevice() {
  c10::impl::tls_set_dispatch_key_included(kKey, was_on_);
}

}  // namespace acc
