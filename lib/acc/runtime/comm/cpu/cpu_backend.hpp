// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/util/intrusive_ptr.h>

#include <chrono>

namespace c10d {
class Backend;
class Store;
}  // namespace c10d

namespace acc::detail {

/// Connects this process to all others through Gloo over TCP, as torch's Python does. Where all are C++
/// programs and some are on one machine, they use memory that they share: on one machine for all_reduce,
/// broadcast, all_gather, all_to_all and barrier; on several ones for all_reduce, with Gloo between the
/// machines. The processes find each other through `store`. Gloo's network interface is GLOO_SOCKET_IFNAME,
/// or the one to which the host's name resolves.
///
/// Processes of one machine are those that can hand over a descriptor to each other, which those in
/// different network namespaces cannot. All agree: if `shared_memory` is false on one of them, or one is
/// Python's, all use Gloo alone.
c10::intrusive_ptr<c10d::Backend> make_cpu_backend(const c10::intrusive_ptr<c10d::Store>& store, int rank,
                                                   int size, std::chrono::milliseconds timeout,
                                                   bool shared_memory);

/// Whether `backend`, which make_cpu_backend made, uses shared memory.
bool uses_shared_memory(const c10d::Backend& backend);

/// Whether it shares memory with all ranks. It then has `alltoall`, too, for tensors of one size.
bool shares_memory_with_all(const c10d::Backend& backend);

}  // namespace acc::detail
