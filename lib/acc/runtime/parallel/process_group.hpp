// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "acc/base/worker_env.hpp"

namespace c10d {
class ProcessGroup;
}

namespace acc {

/// How `reduce` combines the values of all processes. `none` is accelerate's word for sum without a mean.
enum class ReduceOp { sum, mean, max, none };

/// The backend for tensors on CUDA devices. NCCL needs a device for each process; Gloo copies through the
/// memory of the CPU, and processes may share a device.
enum class CudaBackend { nccl, gloo };

/// The time after which a process gives up waiting for the others.
inline constexpr std::chrono::milliseconds kDefaultTimeout = std::chrono::minutes(30);

/// The processes of a job and their collective operations: over Gloo for tensors on the CPU, over NCCL or
/// Gloo for those on CUDA devices. Every process makes the same calls in the same order. Each function throws
/// Error{system} naming this rank when another process is lost or does not answer in time; the group is then
/// unusable.
class ProcessGroup {
 public:
  /// Joins the job that `worker` describes: as a client of the launcher's store where it has one, else rank 0
  /// serves the store. `device` is where this process computes; on CUDA devices `cuda_backend` is used.
  /// Returns when all processes have joined. Throws Error{rendezvous} when they do not in time. SIGPIPE is
  /// ignored from then on, as in Python, unless the program handles it: a lost process is an Error here.
  explicit ProcessGroup(const WorkerEnv& worker, std::chrono::milliseconds timeout = kDefaultTimeout,
                        c10::Device device = c10::Device(c10::kCPU),
                        CudaBackend cuda_backend = CudaBackend::nccl);
  ~ProcessGroup();
  ProcessGroup(const ProcessGroup&) = delete;
  ProcessGroup& operator=(const ProcessGroup&) = delete;

  int rank() const;
  int size() const;
  std::chrono::milliseconds timeout() const;

  /// Replaces `tensor` by the combination of every process's; the mean of whole numbers is a float tensor.
  void all_reduce(at::Tensor& tensor, ReduceOp op);

  /// Every process's `tensor`, in rank order, along a new first dimension. All must have one shape and type.
  at::Tensor all_gather(const at::Tensor& tensor);

  /// Overwrites `tensor` with that of rank `from`. All must have one shape and type.
  void broadcast(at::Tensor& tensor, int from);

  /// The same for many tensors, in few messages.
  void broadcast(const std::vector<at::Tensor>& tensors, int from);

  /// Returns when every process has called it.
  void barrier();

  /// Calls `act`, in which LibTorch itself communicates; `doing` names it in errors. Exceptions of LibTorch
  /// about other processes leave as Error{system}, all others as they are.
  void explained(std::string_view doing, const std::function<void()>& act);

  /// LibTorch's own object, for what acc has no function for.
  c10d::ProcessGroup& native() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace acc
