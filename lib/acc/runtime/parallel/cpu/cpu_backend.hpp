// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/util/intrusive_ptr.h>

#include <chrono>

namespace c10d {
class Backend;
class Store;
}  // namespace c10d

namespace acc::detail {

/// Connects this process to all others through Gloo over TCP, as torch's Python does, and where all are
/// processes of one machine and C++ programs, lets them all-reduce, broadcast, gather and wait for each other
/// through memory that they share. The processes find each other through `store`. Gloo's network interface is
/// GLOO_SOCKET_IFNAME, or the one to which the host's name resolves.
///
/// Processes of one machine are those that can hand over a descriptor to each other. All agree: if
/// `shared_memory` is false on one of them, or one is Python's, all use Gloo alone.
c10::intrusive_ptr<c10d::Backend> make_cpu_backend(const c10::intrusive_ptr<c10d::Store>& store, int rank,
                                                   int size, std::chrono::milliseconds timeout,
                                                   bool shared_memory);

/// Whether `backend`, which make_cpu_backend made, uses shared memory.
bool uses_shared_memory(const c10d::Backend& backend);

}  // namespace acc::detail
