// SPDX-License-Identifier: Apache-2.0
// ProcessGroupGloo.hpp declares its class only if this macro is defined.
#define USE_C10D_GLOO
#include "acc/runtime/parallel/gloo/gloo_backend.hpp"

#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include "acc/base/environment.hpp"

namespace acc::detail {
namespace {

template <class Options>
auto make_options(std::chrono::milliseconds timeout) {
  if constexpr (requires { Options::create_default(timeout); }) {
    return Options::create_default(timeout);
  } else {
    // In LibTorch 2.9 the caller has to choose the network interface.
    auto options = Options::create(timeout);
    const std::string interface = Environment::of_process().get("GLOO_SOCKET_IFNAME");
    options->devices.push_back(interface.empty()
                                   ? c10d::ProcessGroupGloo::createDefaultDevice()
                                   : c10d::ProcessGroupGloo::createDeviceForInterface(interface));
    return options;
  }
}

}  // namespace

c10::intrusive_ptr<c10d::Backend> make_gloo_backend(const c10::intrusive_ptr<c10d::Store>& store, int rank,
                                                    int size, std::chrono::milliseconds timeout) {
  return c10::make_intrusive<c10d::ProcessGroupGloo>(c10::make_intrusive<c10d::PrefixStore>("cpu/", store),
                                                     rank, size,
                                                     make_options<c10d::ProcessGroupGloo::Options>(timeout));
}

}  // namespace acc::detail
