// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "acc/base/worker_env.hpp"

namespace c10d {
class ProcessGroup;
}

namespace acc {

/// How `reduce` combines the values of all processes. `none` is accelerate's other name for `sum`.
enum class ReduceOp { sum, mean, max, none };

/// The backend for tensors on CUDA devices. NCCL requires a separate device for each process. Gloo copies
/// through CPU memory, and processes may share a device.
enum class CudaBackend { nccl, gloo };

/// What carries the tensors on the CPU.
///
/// `shared_memory`: where all processes are C++ programs on one machine, memory that they share, for
/// all_reduce, broadcast, all_gather, all_to_all and barrier. If they are on several machines, all_reduce
/// adds in shared memory on each of them, and over Gloo between them. Everything else goes over Gloo, which
/// is also what Python's processes speak. `gloo`: Gloo alone.
///
/// Both give the same bits on two processes. On more, shared memory adds in the order of the ranks and Gloo
/// in another one, so sums of floats may differ in their last bits; each gives the same bits in every run on
/// the same number of processes and machines.
enum class CpuBackend { shared_memory, gloo };

/// The time after which a process gives up waiting for the others.
inline constexpr std::chrono::milliseconds kDefaultTimeout = std::chrono::minutes(30);

/// The processes of a job and their collective operations: through shared memory or over Gloo for tensors on
/// the CPU, over NCCL or Gloo for those on CUDA devices. Every process makes the same calls in the same
/// order, from one thread: calls of several could meet in another order elsewhere. Each function throws
/// Error{system} naming this rank when another process is lost or does not answer in time; the group is then
/// unusable.
class ProcessGroup {
 public:
  /// Joins the job that `worker` describes, through the launcher's store if there is one; otherwise rank 0
  /// serves the store. `device` is the device of this process; `cuda_backend` is used if it is a CUDA device.
  /// Without `cpu_backend` the variable ACC_CPU_BACKEND decides, `shared_memory` (the default) or `gloo`; if
  /// one process has gloo, all use it. Returns when all processes have joined; throws Error{rendezvous} when
  /// they do not join in time. From then on SIGPIPE is ignored, as in Python, unless the program handles it,
  /// so that a lost process is an Error.
  explicit ProcessGroup(const WorkerEnv& worker, std::chrono::milliseconds timeout = kDefaultTimeout,
                        c10::Device device = c10::Device(c10::kCPU),
                        CudaBackend cuda_backend = CudaBackend::nccl,
                        std::optional<CpuBackend> cpu_backend = {});
  ~ProcessGroup();
  ProcessGroup(const ProcessGroup&) = delete;
  ProcessGroup& operator=(const ProcessGroup&) = delete;

  int rank() const;                           ///< The rank of this process, from 0.
  int size() const;                           ///< The number of processes.
  std::chrono::milliseconds timeout() const;  ///< The time after which a process gives up.
  CpuBackend cpu_backend() const;             ///< What all processes use.

  /// Replaces `tensor` by the sum, mean or maximum of all processes' tensors. The mean of integers is a float
  /// tensor, a sum of truth values is true if one of them is. Sums overflow as those of the tensor's type do,
  /// means of integers and fp16 do not. On the CPU a maximum is NaN if one of the values is.
  void all_reduce(at::Tensor& tensor, ReduceOp op);

  /// Stacks the tensors of all processes in rank order along a new first dimension. All must have the same
  /// shape and type.
  at::Tensor all_gather(const at::Tensor& tensor);

  /// The same for a comparison that some processes may not know of: when others do something else, it throws
  /// Error{usage} within seconds, where the launcher's store tells what they do. `doing` names it in errors,
  /// those of the others among them.
  at::Tensor all_gather_to_compare(const at::Tensor& tensor, std::string_view doing);

  /// Overwrites `tensor` with that of rank `from`. All must have the same shape and type.
  void broadcast(at::Tensor& tensor, int from);

  /// The same for many tensors, which are combined into few messages.
  void broadcast(const std::vector<at::Tensor>& tensors, int from);

  /// Returns when every process has called it.
  void barrier();

  /// Calls `function`, in which LibTorch itself communicates; `doing` names the operation in errors. Converts
  /// LibTorch's exceptions about other processes to Error{system}; others pass through.
  void with_explained_errors(std::string_view doing, const std::function<void()>& function);

  /// LibTorch's process group, for operations that acc does not wrap.
  c10d::ProcessGroup& native() const;

 private:
  struct Impl;
  at::Tensor gather_all(const at::Tensor& tensor, std::string_view doing, bool compares);

  std::unique_ptr<Impl> impl_;
};

}  // namespace acc
