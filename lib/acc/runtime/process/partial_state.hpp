// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "acc/base/worker_env.hpp"
#include "acc/runtime/nested_tensors.hpp"
#include "acc/runtime/parallel/process_group.hpp"
#include "acc/runtime/process/object_text.hpp"
#include "acc/runtime/process/operations.hpp"

namespace acc {

enum class DistributedType { no, multi_cpu, multi_gpu };

/// A process's rank in the job and the collective operations beside training: accelerate's
/// PartialState, which every Accelerator has. All processes call the functions marked "together", in
/// the same order; those throw Error{system} when another process is lost.
class PartialState {
 public:
  /// Together: joins the job that the environment describes; the second object of a program shares the
  /// process group of the first. Throws Error{usage} for an invalid environment, Error{rendezvous} when the
  /// others do not join. With `cpu`, or ACCELERATE_USE_CPU, it stays on the CPU where there are GPUs.
  explicit PartialState(std::chrono::milliseconds timeout = kDefaultTimeout, bool cpu = false,
                        CudaBackend cuda_backend = CudaBackend::nccl);

  int num_processes() const { return worker_.world_size; }
  int process_index() const { return worker_.rank; }
  int local_process_index() const { return worker_.local_rank; }
  bool is_main_process() const { return process_index() == 0; }
  bool is_local_main_process() const { return local_process_index() == 0; }
  bool is_last_process() const { return process_index() == num_processes() - 1; }
  bool distributed() const { return num_processes() > 1; }
  DistributedType distributed_type() const;
  /// The CUDA device of the local rank where the CUDA plug-in and a driver are there, else the CPU.
  at::Device device() const { return device_; }

  /// Together: returns when every process has called it.
  void wait_for_everyone() const;

  /// Calls `act` on the main process first and on the others when it is done there. Together.
  template <class Act>
  void main_process_first(Act act) const {
    one_first(is_main_process(), act);
  }
  /// The same on each machine.
  template <class Act>
  void local_main_process_first(Act act) const {
    one_first(is_local_main_process(), act);
  }

  /// Calls `act` on the named process only; a single process always calls it.
  template <class Act>
  void on_main_process(Act act) const {
    if (is_main_process()) act();
  }
  template <class Act>
  void on_local_main_process(Act act) const {
    if (is_local_main_process()) act();
  }
  template <class Act>
  void on_last_process(Act act) const {
    if (is_last_process()) act();
  }
  template <class Act>
  void on_process(int process_index, Act act) const {
    if (process_index == this->process_index() || !distributed()) act();
  }
  template <class Act>
  void on_local_process(int local_process_index, Act act) const {
    if (local_process_index == this->local_process_index() || !distributed()) act();
  }

  /// This process's part of a vector or of a tensor's rows; in a map, tuple, pair or array, of each value.
  /// The first processes get one more where it does not divide; with padding the others repeat the last
  /// element. One process gets all. Throws Error{usage} when values of a map or tuple differ in length.
  template <class Sequence>
  Sequence split_between_processes(const Sequence& sequence, bool apply_padding = false) const {
    const std::size_t length = detail::split_length(sequence);
    if (!distributed()) return sequence;
    return detail::take_part(
        sequence, detail::part_of_process(length, static_cast<std::size_t>(process_index()),
                                          static_cast<std::size_t>(num_processes()), apply_padding));
  }

  /// Together: the tensors of all processes one after the other along dimension 0; a 0-d one counts as one
  /// element. Takes tensors and structures of them, see TensorStructure, as do the next three. Throws
  /// Error{usage} on every rank when shapes or types differ.
  template <TensorStructure Structure>
  Structure gather(const Structure& tensors) const {
    return map_tensors(tensors,
                       [this](const at::Tensor& one) { return detail::gather_tensor(one, group_of_all()); });
  }

  /// Together: the sum, mean or maximum over all processes, on each of them, times `scale`. The mean of whole
  /// numbers is a float tensor, the sum of bools whether one is true. Throws as gather, also for types that
  /// cannot be reduced, as int16.
  template <TensorStructure Structure>
  Structure reduce(const Structure& tensors, ReduceOp op = ReduceOp::sum, double scale = 1) const {
    return map_tensors(tensors, [&](const at::Tensor& one) {
      return detail::reduce_tensor(one, op, scale, group_of_all());
    });
  }

  /// Together: rank `from`'s tensors, on each process. All must have one shape and type; throws as gather.
  template <TensorStructure Structure>
  Structure broadcast(const Structure& tensors, int from = 0) const {
    return map_tensors(
        tensors, [&](const at::Tensor& one) { return detail::broadcast_tensor(one, from, group_of_all()); });
  }

  /// Together: fills each tensor up with `pad_index` to the largest size that a process has along `dim`, at
  /// the end or first, so that all can be gathered. Tensors without that dimension stay as they are. Throws
  /// Error{usage} on every rank when types or numbers of dimensions differ.
  template <TensorStructure Structure>
  Structure pad_across_processes(const Structure& tensors, const PadOptions& options = {}) const {
    return map_tensors(
        tensors, [&](const at::Tensor& one) { return detail::pad_tensor(one, options, group_of_all()); });
  }

  /// Together: the objects of all processes in rank order; the lists may differ in length. Strings, numbers,
  /// and with acc/objects.hpp any type that nlohmann's JSON library converts.
  template <class T>
  std::vector<T> gather_object(const std::vector<T>& objects) const {
    std::vector<std::string> texts;
    for (const T& object : objects) texts.push_back(ObjectText<T>::write(object));
    std::vector<T> all;
    for (const std::string& text : detail::gather_texts(texts, group_of_all()))
      all.push_back(ObjectText<T>::read(text));
    return all;
  }

  /// Together: rank `from`'s object, on each process.
  template <class T>
  T broadcast_object(const T& object, int from = 0) const {
    const bool is_source = process_index() == from;
    return ObjectText<T>::read(detail::broadcast_text(
        is_source ? ObjectText<T>::write(object) : std::string(), from, group_of_all()));
  }

  /// A line on standard output, from the first process of each machine.
  void print(std::string_view line) const;

  /// The group of all processes; null when there is one process.
  const std::shared_ptr<ProcessGroup>& process_group() const { return group_; }
  const WorkerEnv& worker() const { return worker_; }

 private:
  friend class Accelerator;

  // Leaves the job: from now on collective operations throw Error{usage}.
  void leave() {
    group_.reset();
    left_ = true;
  }

  template <class Act>
  void one_first(bool is_first, Act& act) const {
    if (!is_first) wait_for_everyone();
    act();
    if (is_first) wait_for_everyone();
  }

  // Null for one process. Throws Error{usage} after leave().
  ProcessGroup* group_of_all() const;

  WorkerEnv worker_;
  at::Device device_;
  std::shared_ptr<ProcessGroup> group_;
  bool left_ = false;
};

}  // namespace acc
