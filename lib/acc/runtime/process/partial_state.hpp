// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "acc/base/worker_env.hpp"
#include "acc/runtime/comm/object_text.hpp"
#include "acc/runtime/comm/operations.hpp"
#include "acc/runtime/comm/process_group.hpp"
#include "acc/runtime/tensors/nested_tensors.hpp"

namespace acc {

namespace detail {

/// Whether this process has a PartialState, also that of an Accelerator, or is in a process group.
bool has_joined_job();

/// Counts the live PartialStates.
class LiveState {
 public:
  LiveState();
  LiveState(const LiveState&) : LiveState() {}
  LiveState& operator=(const LiveState&) = default;
  ~LiveState();
};

}  // namespace detail

/// How many processes there are, and on which devices.
enum class DistributedType { no, multi_cpu, multi_gpu };

/// The place of this process in its job, and collective operations: accelerate's PartialState. Every
/// Accelerator is one. All processes must call the functions marked "together", in the same order; those
/// throw Error{system} when another process is lost.
class PartialState {
 public:
  /// Together: joins the job that the environment variables describe. A second object in a program shares the
  /// process group of the first. With `cpu`, or ACCELERATE_USE_CPU, the process uses the CPU even if there
  /// are GPUs. Throws Error{usage} for invalid variables, Error{rendezvous} when the other processes do not
  /// join.
  explicit PartialState(std::chrono::milliseconds timeout = kDefaultTimeout, bool cpu = false,
                        CudaBackend cuda_backend = CudaBackend::nccl,
                        std::optional<CpuBackend> cpu_backend = {});

  int num_processes() const { return worker_.world_size; }        ///< Over all machines.
  int process_index() const { return worker_.rank; }              ///< The rank of this process, from 0.
  int local_process_index() const { return worker_.local_rank; }  ///< Its rank on its machine, from 0.
  bool is_main_process() const { return process_index() == 0; }   ///< Whether it is rank 0.
  /// Whether it is the first of its machine.
  bool is_local_main_process() const { return local_process_index() == 0; }
  /// Whether it has the highest rank.
  bool is_last_process() const { return process_index() == num_processes() - 1; }
  bool distributed() const { return num_processes() > 1; }  ///< Whether there are several processes.
  DistributedType distributed_type() const;                 ///< How the processes work together.
  /// The CUDA device of the local rank if the CUDA plug-in and a driver are installed, otherwise the CPU.
  at::Device device() const { return device_; }

  /// Together: returns when every process has called it.
  void wait_for_everyone() const;

  /// Together: calls `function` on the main process first, and on the others when the main process has
  /// finished.
  template <class Function>
  void main_process_first(Function function) const {
    one_first(is_main_process(), function);
  }
  /// The same with the local main process of each machine.
  template <class Function>
  void local_main_process_first(Function function) const {
    one_first(is_local_main_process(), function);
  }

  /// The next functions call `function` on the named process only. If there is a single process, it always
  /// calls `function`.
  template <class Function>
  void on_main_process(Function function) const {
    if (is_main_process()) function();
  }
  /// On the first process of each machine.
  template <class Function>
  void on_local_main_process(Function function) const {
    if (is_local_main_process()) function();
  }
  /// On the process of the highest rank.
  template <class Function>
  void on_last_process(Function function) const {
    if (is_last_process()) function();
  }
  /// On the process of this rank.
  template <class Function>
  void on_process(int process_index, Function function) const {
    if (process_index == this->process_index() || !distributed()) function();
  }
  /// On the process of this rank of each machine.
  template <class Function>
  void on_local_process(int local_process_index, Function function) const {
    if (local_process_index == this->local_process_index() || !distributed()) function();
  }

  /// This process's part of the elements of a vector or of the rows of a tensor; in a map, tuple, pair or
  /// array, of each value. If they cannot be divided evenly, the first processes get one more; with padding,
  /// the others repeat the last element. A single process gets everything. Throws Error{usage} when the
  /// values of a map or tuple differ in length.
  template <class Sequence>
  Sequence split_between_processes(const Sequence& sequence, bool apply_padding = false) const {
    const std::size_t length = detail::split_length(sequence);
    if (!distributed()) return sequence;
    return detail::take_part(
        sequence, detail::part_of_process(length, static_cast<std::size_t>(process_index()),
                                          static_cast<std::size_t>(num_processes()), apply_padding));
  }

  /// Together: concatenates the tensors of all processes along dimension 0; 0-dimensional tensors count as
  /// one row. Like the next three functions, it takes a tensor or a structure of tensors, see
  /// TensorStructure. Throws Error{usage} on every rank when shapes, types or structures (keys of maps,
  /// lengths of vectors) differ, a tensor is undefined, sparse or of the meta device, or the processes call
  /// different operations.
  template <TensorStructure Structure>
  Structure gather(const Structure& tensors) const {
    return together(tensors, [](const at::Tensor& one, ProcessGroup* group, const std::string& structure) {
      return detail::gather_tensor(one, group, structure);
    });
  }

  /// Together: the sum, mean or maximum over all processes times `scale`, on every process. The mean of
  /// integers is a float tensor, and does not overflow as their sum may; the sum of bools is true if one of
  /// them is true. Throws as gather, and for types that cannot be reduced, such as int16.
  template <TensorStructure Structure>
  Structure reduce(const Structure& tensors, ReduceOp op = ReduceOp::sum, double scale = 1) const {
    return together(tensors, [&](const at::Tensor& one, ProcessGroup* group, const std::string& structure) {
      return detail::reduce_tensor(one, op, scale, group, structure);
    });
  }

  /// Together: rank `from`'s tensors, on every process. Throws as gather.
  template <TensorStructure Structure>
  Structure broadcast(const Structure& tensors, int from = 0) const {
    return together(tensors, [&](const at::Tensor& one, ProcessGroup* group, const std::string& structure) {
      return detail::broadcast_tensor(one, from, group, structure);
    });
  }

  /// Together: pads each tensor with `pad_index` to the largest size of all processes along `dim`, at the end
  /// or at the start, so that the tensors can be gathered. Tensors without that dimension are returned
  /// unchanged. Throws Error{usage} on every rank when types or numbers of dimensions differ.
  template <TensorStructure Structure>
  Structure pad_across_processes(const Structure& tensors, const PadOptions& options = {}) const {
    return together(tensors, [&](const at::Tensor& one, ProcessGroup* group, const std::string& structure) {
      return detail::pad_tensor(one, options, group, structure);
    });
  }

  /// Together: the objects of all processes in rank order; the lists may differ in length. Objects may be
  /// strings, numbers, and with acc/objects.hpp any type that nlohmann's JSON library can convert. What the
  /// conversion throws on one process is an error on all.
  template <class T>
  std::vector<T> gather_object(const std::vector<T>& objects) const {
    std::vector<std::string> texts;
    const auto failure = detail::failure_of([&] {
      for (const T& object : objects) texts.push_back(ObjectText<T>::write(object));
    });
    std::vector<T> all;
    for (const std::string& text : detail::gather_texts(texts, group_of_all(), failure))
      all.push_back(ObjectText<T>::read(text));
    return all;
  }

  /// Together: rank `from`'s object, on every process.
  template <class T>
  T broadcast_object(const T& object, int from = 0) const {
    std::string text;
    const auto failure = detail::failure_of([&] {
      if (process_index() == from) text = ObjectText<T>::write(object);
    });
    return ObjectText<T>::read(detail::broadcast_text(text, from, group_of_all(), failure));
  }

  /// Prints a line to standard output on the local main process of each machine.
  void print(std::string_view line) const;

  /// The process group of all processes; null if there is only one process.
  const std::shared_ptr<ProcessGroup>& process_group() const { return group_; }
  /// The place of this process, as the launcher has told it.
  const WorkerEnv& worker() const { return worker_; }

 protected:
  /// Leaves the job: collective operations throw Error{usage} from now on.
  void leave() {
    group_.reset();
    left_ = true;
  }
  bool has_left() const { return left_; }  ///< Whether leave was called.

 private:
  // Calls `function` for each tensor of a structure that all processes give.
  template <TensorStructure Structure, class Function>
  Structure together(const Structure& tensors, const Function& function) const {
    ProcessGroup* const group = group_of_all();
    const std::string structure = group == nullptr ? std::string() : detail::structure_text(tensors);
    bool is_empty = true;
    Structure result = map_tensors(tensors, [&](const at::Tensor& one) {
      is_empty = false;
      return function(one, group, structure);
    });
    if (is_empty) detail::require_no_tensors(structure, group);
    return result;
  }

  template <class Function>
  void one_first(bool is_first, Function& function) const {
    if (!is_first) wait_for_everyone();
    function();
    if (is_first) wait_for_everyone();
  }

  // Null if there is one process. Throws Error{usage} after leave().
  ProcessGroup* group_of_all() const;

  WorkerEnv worker_;
  at::Device device_;
  std::shared_ptr<ProcessGroup> group_;
  bool left_ = false;
  detail::LiveState live_;
};

}  // namespace acc
