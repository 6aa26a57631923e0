// SPDX-License-Identifier: Apache-2.0
// ProcessGroupGloo.hpp declares its class only if this macro is defined.
#define USE_C10D_GLOO
#include "acc/runtime/comm/cpu/cpu_backend.hpp"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include <atomic>
#include <optional>
#include <string>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <utility>
#include <vector>
#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

#include "acc/base/environment.hpp"
#include "acc/runtime/comm/cpu/handover.hpp"
#include "acc/runtime/comm/cpu/join_machine.hpp"
#include "acc/runtime/comm/cpu/machine_leader.hpp"
#include "acc/runtime/comm/cpu/memory_group.hpp"
#include "acc/runtime/comm/cpu/quiet_gloo.hpp"
#include "acc/runtime/comm/cpu/sparse_sum.hpp"

// Functions of the base class that LibTorch 2.15 lacks. The table of virtual functions refers to them when
// the library is loaded: with that LibTorch the dynamic linker would end the program before
// require_compiled_torch can report it. A class that held Gloo instead would need a forward for each of the
// interface's functions (46 in 2.11, 73 in 2.15), and would lack those that the next LibTorch adds.
// clang-format off
asm(".weak _ZN4c10d16ProcessGroupGloo13alltoall_baseERN2at6TensorES3_RSt6vectorIlSaIlEES7_RKNS_15AllToAllOptionsE");
asm(".weak _ZN4c10d16ProcessGroupGloo20_reduce_scatter_baseERN2at6TensorES3_RKNS_20ReduceScatterOptionsE");
asm(".weak _ZN4c10d16ProcessGroupGloo25setSequenceNumberForGroupEv");
asm(".weak _ZN4c10d16ProcessGroupGloo31allgather_into_tensor_coalescedERSt6vectorIN2at6TensorESaIS3_EES6_RKNS_16AllgatherOptionsE");
asm(".weak _ZN4c10d16ProcessGroupGloo31reduce_scatter_tensor_coalescedERSt6vectorIN2at6TensorESaIS3_EES6_RKNS_20ReduceScatterOptionsE");
// clang-format on

namespace acc::detail {
namespace {

using c10::ivalue::Future;
using Gloo = c10d::ProcessGroupGloo;
using Tensors = std::vector<at::Tensor>;

template <class Options>
auto make_options(std::chrono::milliseconds timeout) {
  if constexpr (requires { Options::create_default(timeout); }) {
    return Options::create_default(timeout);
  } else {
    // In LibTorch 2.9 the caller has to choose the network interface.
    auto options = Options::create(timeout);
    const std::string interface = Environment::of_process().get("GLOO_SOCKET_IFNAME");
    options->devices.push_back(interface.empty() ? Gloo::createDefaultDevice()
                                                 : Gloo::createDeviceForInterface(interface));
    return options;
  }
}

// ThreadSanitizer does not see LibTorch's counts of references, by which all that a thread does with an
// object comes before its destruction by another thread.
#if defined(__SANITIZE_THREAD__)
void before_destruction(void* object) {
  __tsan_release(object);
}
void at_destruction(void* object) {
  __tsan_acquire(object);
}
#else
void before_destruction(void* /*object*/) {}
void at_destruction(void* /*object*/) {}
#endif

// An operation of a MemoryGroup, or of a MachineLeader if `group` is null, as c10d's callers know operations.
class MemoryWork : public c10d::Work {
 public:
  MemoryWork(int rank, c10d::OpType type, const char* title, Tensors inputs, Tensors results,
             std::shared_ptr<MemoryGroup> group)
      : Work(rank, type, title, inputs),
        inputs_(std::move(inputs)),
        results_(std::move(results)),
        group_(std::move(group)) {}

  ~MemoryWork() override { at_destruction(this); }

  void set_number(std::uint64_t number) { number_ = number; }

  void on_done(std::exception_ptr failure) {
    c10::intrusive_ptr<Future> future;
    {
      const std::scoped_lock lock(mutex_);
      is_done_ = true;
      failure_ = failure;
      future = future_;
    }
    finish(std::move(failure));
    if (future) complete(*future);
    before_destruction(this);
  }

  bool wait(std::chrono::milliseconds timeout) override {
    if (!group_) return Work::wait(timeout);
    const bool done = group_->wait(number_, timeout == kNoTimeout ? std::nullopt : std::optional(timeout));
    TORCH_CHECK(done, "Operation timed out!");
    return Work::wait(kNoTimeout);  // on_done may still be called on another thread
  }

  c10::intrusive_ptr<Future> getFuture() override {
    bool is_done = false;
    {
      const std::scoped_lock lock(mutex_);
      if (future_) return future_;
      future_ = c10::make_intrusive<Future>(c10::ListType::create(c10::TensorType::get()));
      is_done = is_done_;
    }
    if (is_done) {
      complete(*future_);
    } else if (group_) {
      group_->hurry();
    }
    return future_;
  }

  Tensors result() override { return results_; }
  std::uint64_t getSequencenumber() const override { return number_; }

 private:
  void complete(Future& future) {
    if (failure_) {
      future.setError(failure_);
    } else {
      future.markCompleted(c10::IValue(results_));
    }
  }

  Tensors inputs_;
  Tensors results_;
  std::shared_ptr<MemoryGroup> group_;
  std::uint64_t number_ = 0;
  bool is_done_ = false;
  std::exception_ptr failure_ = {};
  c10::intrusive_ptr<Future> future_ = {};
};

std::optional<Combination> combination_of(const c10d::ReduceOp& op) {
  switch (static_cast<c10d::ReduceOp::RedOpType>(op)) {
    case c10d::ReduceOp::SUM:
    case c10d::ReduceOp::AVG:
      return Combination::sum;
    case c10d::ReduceOp::PRODUCT:
      return Combination::product;
    case c10d::ReduceOp::MIN:
      return Combination::min;
    case c10d::ReduceOp::MAX:
      return Combination::max;
    default:
      return std::nullopt;
  }
}

// Only asks what is the same on all ranks: another answer on one of them would leave the others waiting.
bool is_in_memory(const at::Tensor& tensor) {
  return tensor.device().is_cpu() && tensor.layout() == at::kStrided;
}

bool is_sparse_in_memory(const at::Tensor& tensor) {
  return tensor.device().is_cpu() && tensor.layout() == at::kSparse;
}

// Calls the function of `Backend` itself by LibTorch's new name, or by the old one, which newer versions
// deprecate.
template <class Backend>
auto gather_by(Backend& backend, at::Tensor& output, at::Tensor& input,
               const c10d::AllgatherOptions& options) {
  if constexpr (requires { backend.Backend::all_gather_single(output, input, options); }) {
    return backend.Backend::all_gather_single(output, input, options);
  } else {
    return backend.Backend::_allgather_base(output, input, options);
  }
}

std::byte* data_of(const at::Tensor& tensor) {
  TORCH_CHECK(tensor.is_non_overlapping_and_dense(), "collective operations require tensors without gaps");
  return static_cast<std::byte*>(tensor.data_ptr());
}

// Outputs of an operation that writes elements in the order of contiguous tensors, as Gloo does: tensors that
// are not so are written when it is done.
class ContiguousOutputs {
 public:
  explicit ContiguousOutputs(const Tensors& outputs) : outputs_(outputs), written_(outputs) {
    for (at::Tensor& tensor : written_) {
      if (tensor.is_contiguous()) continue;
      tensor = at::empty(tensor.sizes(), tensor.options());
      copies_ = true;
    }
  }

  const Tensors& written() const { return written_; }
  // Waits if there is something to copy.
  c10::intrusive_ptr<c10d::Work> after(c10::intrusive_ptr<c10d::Work> work) const {
    if (!copies_) return work;
    work->wait();
    for (std::size_t i = 0; i < outputs_.size(); ++i)
      if (!written_[i].is_same(outputs_[i])) outputs_[i].copy_(written_[i]);
    return work;
  }

 private:
  Tensors outputs_;
  Tensors written_;
  bool copies_ = false;
};

// Gloo, and beside it the memory of the machine for what that can do. What Gloo does is not ordered beside
// it.
class CpuBackend : public Gloo {
 public:
  CpuBackend(const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
             std::chrono::milliseconds timeout)
      : Gloo(store, rank, size, make_options<Gloo::Options>(timeout)) {}

  // Python's processes know Gloo's operations alone.
  void set_all_are_cpp() { all_are_cpp_ = true; }
  void set_machine(std::optional<Machine> machine) { machine_ = std::move(machine); }
  bool uses_memory() const { return machine_.has_value(); }
  bool is_one_machine() const { return machine_ && machine_->has_all_ranks; }

  c10::intrusive_ptr<c10d::Work> allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) override {
    const auto combination = combination_of(options.reduceOp);
    const bool average = options.reduceOp == c10d::ReduceOp::AVG;
    if (all_are_cpp_ && tensors.size() == 1 && is_sparse_in_memory(tensors[0]) &&
        options.reduceOp == c10d::ReduceOp::SUM)
      return reduce_sparse(tensors, options);
    if (!machine_ || tensors.size() != 1 || !is_in_memory(tensors[0]) || !combination ||
        combine_function(tensors[0].scalar_type(), *combination) == nullptr ||
        (average && divide_function(tensors[0].scalar_type()) == nullptr))
      return Gloo::allreduce(tensors, options);
    Collective collective = whole(Collective::Kind::all_reduce, tensors[0], options.timeout);
    collective.type = tensors[0].scalar_type();
    collective.combination = *combination;
    if (!machine_->has_all_ranks) return all_reduce_of_machines(std::move(collective), tensors, options);
    collective.average = average;
    return begin(std::move(collective), c10d::OpType::ALLREDUCE, "memory:all_reduce", tensors, tensors);
  }

  c10::intrusive_ptr<c10d::Work> broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) override {
    if (!is_one_machine() || tensors.size() != 1 || !is_in_memory(tensors[0]) || options.rootRank < 0 ||
        options.rootRank >= getSize() || options.rootTensor != 0)
      return Gloo::broadcast(tensors, options);
    Collective collective = whole(Collective::Kind::broadcast, tensors[0], options.timeout);
    collective.root = static_cast<int>(options.rootRank);
    return begin(std::move(collective), c10d::OpType::BROADCAST, "memory:broadcast", tensors, tensors);
  }

  c10::intrusive_ptr<c10d::Work> allgather(std::vector<Tensors>& outputs, Tensors& inputs,
                                           const c10d::AllgatherOptions& options) override {
    if (!is_one_machine() || inputs.size() != 1 || outputs.size() != 1 || !is_in_memory(inputs[0]) ||
        outputs[0].size() != static_cast<std::size_t>(getSize()))
      return Gloo::allgather(outputs, inputs, options);
    const at::Tensor input = inputs[0].contiguous();
    Collective collective = whole(Collective::Kind::all_gather, input, options.timeout);
    for (const at::Tensor& output : outputs[0])
      TORCH_CHECK(output.nbytes() == collective.bytes && is_in_memory(output),
                  "all_gather: each output must have the input's type and size");
    const ContiguousOutputs results(outputs[0]);
    for (const at::Tensor& output : results.written())
      collective.gathered.push_back(output.is_same(input) ? nullptr : data_of(output));
    return results.after(begin(std::move(collective), c10d::OpType::ALLGATHER, "memory:all_gather", {input},
                               results.written()));
  }

  // The names of one operation in different versions of LibTorch.
  c10::intrusive_ptr<c10d::Work> _allgather_base(at::Tensor& output, at::Tensor& input,
                                                 const c10d::AllgatherOptions& options) override {
    return gather_into(output, input, options);
  }
  c10::intrusive_ptr<c10d::Work> all_gather_single(at::Tensor& output,
                                                   at::Tensor& input,  // NOLINT: overrides in 2.15
                                                   const c10d::AllgatherOptions& options) {
    return gather_into(output, input, options);
  }

  // Gloo has none of lists on CPUs.
  c10::intrusive_ptr<c10d::Work> alltoall(Tensors& outputs, Tensors& inputs,
                                          const c10d::AllToAllOptions& options) override {
    const auto size = static_cast<std::size_t>(getSize());
    if (!is_one_machine() || size > MemoryGroup::kMaxRanksOfAllToAll || inputs.size() != size ||
        outputs.size() != size || !is_in_memory(inputs[0]))
      return Gloo::alltoall(outputs, inputs, options);
    Collective collective{.kind = Collective::Kind::all_to_all,
                          .bytes = inputs[0].nbytes(),
                          .timeout = timeout_of(options.timeout)};
    for (const Tensors& tensors : {inputs, outputs})
      for (const at::Tensor& tensor : tensors)
        TORCH_CHECK(tensor.nbytes() == collective.bytes && is_in_memory(tensor),
                    "all_to_all: all tensors must have one size");
    const ContiguousOutputs results(outputs);
    Tensors sources;
    for (std::size_t rank = 0; rank < size; ++rank) {
      sources.push_back(inputs[rank].contiguous());
      collective.sources.push_back(data_of(sources[rank]));
      collective.gathered.push_back(data_of(results.written()[rank]));
    }
    const auto own = static_cast<std::size_t>(getRank());
    const at::Tensor& kept = results.written()[own];
    if (!kept.is_same(sources[own])) kept.copy_(sources[own]);
    return results.after(begin(std::move(collective), c10d::OpType::ALLTOALL, "memory:all_to_all", sources,
                               results.written()));
  }

  c10::intrusive_ptr<c10d::Work> barrier(const c10d::BarrierOptions& options) override {
    if (!is_one_machine()) return Gloo::barrier(options);
    return begin({.kind = Collective::Kind::barrier, .timeout = timeout_of(options.timeout)},
                 c10d::OpType::BARRIER, "memory:barrier", {}, {});
  }

  std::uint64_t getSequenceNumberForGroup() override { return Gloo::getSequenceNumberForGroup() + begun_; }

 private:
  std::chrono::milliseconds timeout_of(std::chrono::milliseconds asked) {
    return asked == c10d::kUnsetTimeout ? getOptions()->timeout : asked;
  }

  Collective whole(Collective::Kind kind, const at::Tensor& tensor, std::chrono::milliseconds timeout) {
    return {.kind = kind, .data = data_of(tensor), .bytes = tensor.nbytes(), .timeout = timeout_of(timeout)};
  }

  c10::intrusive_ptr<c10d::Work> gather_into(at::Tensor& output, at::Tensor& input,
                                             const c10d::AllgatherOptions& options) {
    if (!is_one_machine() || !is_in_memory(input)) return gather_by<Gloo>(*this, output, input, options);
    const at::Tensor source = input.contiguous();
    Collective collective = whole(Collective::Kind::all_gather, source, options.timeout);
    const auto size = static_cast<std::size_t>(getSize());
    TORCH_CHECK(output.nbytes() == collective.bytes * size && is_in_memory(output) &&
                    output.scalar_type() == input.scalar_type(),
                "all_gather: the output must have the input's type and its size for each process");
    const ContiguousOutputs results({output});
    for (std::size_t rank = 0; rank < size; ++rank)
      collective.gathered.push_back(data_of(results.written()[0]) + rank * collective.bytes);
    return results.after(begin(std::move(collective), c10d::OpType::_ALLGATHER_BASE, "memory:all_gather",
                               {source}, results.written()));
  }

  c10::intrusive_ptr<MemoryWork> new_work(c10d::OpType type, const char* title, Tensors inputs,
                                          Tensors results, std::shared_ptr<MemoryGroup> memory) {
    ++begun_;
    return c10::make_intrusive<MemoryWork>(getRank(), type, title, std::move(inputs), std::move(results),
                                           std::move(memory));
  }

  c10::intrusive_ptr<c10d::Work> begin(Collective collective, c10d::OpType type, const char* title,
                                       Tensors inputs, Tensors results) {
    auto work = new_work(type, title, std::move(inputs), std::move(results), machine_->memory);
    collective.done = [work](std::exception_ptr failure) { work->on_done(std::move(failure)); };
    work->set_number(machine_->memory->begin(std::move(collective)));
    return work;
  }

  // Returns when it is done: each of its operations needs the sizes that the one before it tells.
  c10::intrusive_ptr<c10d::Work> reduce_sparse(Tensors& tensors, const c10d::AllreduceOptions& options) {
    sum_sparse(tensors[0], [&](const at::Tensor& contribution) {
      Tensors inputs{contribution};
      std::vector<Tensors> outputs(1);
      for (int rank = 0; rank < getSize(); ++rank) outputs[0].push_back(at::empty_like(contribution));
      c10d::AllgatherOptions gather_options;
      gather_options.timeout = options.timeout;
      allgather(outputs, inputs, gather_options)->wait();
      return std::move(outputs[0]);
    });
    auto work = new_work(c10d::OpType::ALLREDUCE, "sparse:all_reduce", tensors, tensors, nullptr);
    work->on_done(nullptr);
    return work;
  }

  // Each machine reduces in memory, the leaders reduce the results over Gloo, and each machine's leader
  // broadcasts that in memory.
  c10::intrusive_ptr<c10d::Work> all_reduce_of_machines(Collective inside, const Tensors& tensors,
                                                        const c10d::AllreduceOptions& options) {
    Collective back = whole(Collective::Kind::broadcast, tensors[0], options.timeout);
    const auto work = new_work(c10d::OpType::ALLREDUCE, "memory:all_reduce", tensors, tensors,
                               machine_->leader ? nullptr : machine_->memory);
    back.done = [work](std::exception_ptr failure) { work->on_done(std::move(failure)); };
    if (!machine_->leader) {
      machine_->memory->begin(std::move(inside));
      work->set_number(machine_->memory->begin(std::move(back)));
      return work;
    }
    const bool average = options.reduceOp == c10d::ReduceOp::AVG;
    const auto divide = average ? divide_function(inside.type) : nullptr;
    const auto outside = [flat = tensors[0].as_strided({tensors[0].numel()}, {1}), divide, size = getSize(),
                          options = reduce_options(options, average)](c10d::Backend& leaders) {
      Tensors own{flat};
      leaders.allreduce(own, options)->wait();
      if (divide != nullptr) divide(flat.data_ptr(), size, static_cast<std::size_t>(flat.numel()));
    };
    machine_->leader->begin({.inside = std::move(inside), .outside = outside, .back = std::move(back)});
    return work;
  }

  static c10d::AllreduceOptions reduce_options(c10d::AllreduceOptions options, bool average) {
    if (average) options.reduceOp = c10d::ReduceOp::SUM;
    return options;
  }

  bool all_are_cpp_ = false;
  std::optional<Machine> machine_ = {};
  std::atomic<std::uint64_t> begun_ = 0;
};

}  // namespace

c10::intrusive_ptr<c10d::Backend> make_cpu_backend(const c10::intrusive_ptr<c10d::Store>& store, int rank,
                                                   int size, std::chrono::milliseconds timeout,
                                                   bool shared_memory) {
  [[maybe_unused]] const QuietGloo quiet;
  std::optional<Handover> handover;
  if (size > 1) {
    handover.emplace();
    announce(*store, rank, *handover);
  }
  auto backend = c10::make_intrusive<CpuBackend>(c10::make_intrusive<c10d::PrefixStore>("cpu/", store), rank,
                                                 size, timeout);
  if (size > 1 && !all_announced(*store, size)) return backend;
  backend->set_all_are_cpp();
  if (size == 1) return backend;
  const auto connect_leaders = [&](int machine, int machines) -> c10::intrusive_ptr<c10d::Backend> {
    return c10::make_intrusive<Gloo>(c10::make_intrusive<c10d::PrefixStore>("cpu/leaders/", store), machine,
                                     machines, make_options<Gloo::Options>(timeout));
  };
  backend->set_machine(join_machine(*backend, *store, *handover, timeout, shared_memory, connect_leaders));
  return backend;
}

bool uses_shared_memory(const c10d::Backend& backend) {
  return dynamic_cast<const CpuBackend&>(backend).uses_memory();
}

bool shares_memory_with_all(const c10d::Backend& backend) {
  return dynamic_cast<const CpuBackend&>(backend).is_one_machine();
}

}  // namespace acc::detail
