// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/util/intrusive_ptr.h>

#include <chrono>

namespace c10d {
class Backend;
class Store;
}  // namespace c10d

namespace acc::detail {

/// Connects this process to all others through Gloo over TCP; the processes find each other through `store`.
/// The network interface is GLOO_SOCKET_IFNAME, or the one to which the host's name resolves.
c10::intrusive_ptr<c10d::Backend> make_gloo_backend(const c10::intrusive_ptr<c10d::Store>& store, int rank,
                                                    int size, std::chrono::milliseconds timeout);

}  // namespace acc::detail
