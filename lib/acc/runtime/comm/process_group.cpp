// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/comm/process_group.hpp"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <c10/util/Flags.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <map>
#include <mutex>
#include <stdexcept>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <torch/csrc/distributed/c10d/reducer.hpp>

#include "acc/base/environment.hpp"
#include "acc/runtime/comm/cpu/cpu_backend.hpp"
#include "acc/runtime/comm/cpu/memory_group.hpp"
#include "acc/runtime/comm/cuda_plugin.hpp"
#include "acc/runtime/comm/explain_failure.hpp"
#include "acc/runtime/comm/missing_peers.hpp"
#include "acc/runtime/comm/progress.hpp"
#include "acc/runtime/comm/record.hpp"
#include "acc/runtime/comm/uncaught.hpp"

// LibTorch's log level, which no header declares.
C10_DECLARE_int(caffe2_log_level);

namespace acc {
namespace {

// Switches off LibTorch's log, unless the user set its level. While a process joins, or checks its peers,
// LibTorch logs each failed attempt with stack traces, although the failure is also an exception, which acc
// reports in one line.
class QuietLog {
 public:
  QuietLog() {
    constexpr int kFatal = 3;
    if (!Environment::of_process().contains("TORCH_CPP_LOG_LEVEL")) FLAGS_caffe2_log_level = kFatal;
  }
  ~QuietLog() { FLAGS_caffe2_log_level = old_level_; }
  QuietLog(const QuietLog&) = delete;
  QuietLog& operator=(const QuietLog&) = delete;

 private:
  int old_level_ = FLAGS_caffe2_log_level;
};

using Store = c10::intrusive_ptr<c10d::Store>;

// The prefix of the store's keys for the next process group: that of torch's init_process_group, so that the
// launcher's store has the same keys for C++ and Python. A process that joins again needs another prefix,
// since the keys of the first contain the old addresses.
std::string next_group_keys() {
  static std::atomic<int> joined = 0;
  const int before = joined++;
  return before == 0 ? "default_pg" : fmt::format("default_pg_{}", before);
}

// Keeps rank 0's server until the process ends; LibTorch gives it to each later store of this port. If it
// ended with its process group, another rank could already be in the next one, on a server that is about to
// end.
void keep_server(std::uint16_t port, const Store& store) {
  static std::mutex mutex;
  // Never destroyed: a forked process would wait for the server's thread, which it does not have.
  static auto& stores = *new std::map<std::uint16_t, Store>;
  const std::lock_guard lock(mutex);
  stores.try_emplace(port, store);
}

// An observer is a client that never serves the store and is not counted as joined.
enum class StoreRole { member, observer };

Store open_store(const WorkerEnv& worker, std::chrono::milliseconds timeout, const std::string& keys,
                 StoreRole role = StoreRole::member) {
  c10d::TCPStoreOptions options;
  options.port = worker.master_port;
  options.isServer = role == StoreRole::member && !worker.use_agent_store && worker.rank == 0;
  if (role == StoreRole::member) options.numWorkers = static_cast<std::size_t>(worker.world_size);
  options.waitWorkers = role == StoreRole::member;
  options.timeout = timeout;
  options.multiTenant = true;
  Store store = c10::make_intrusive<c10d::TCPStore>(worker.master_addr, options);
  if (options.isServer) keep_server(options.port, store);
  // The first attempt has Python's keys, so that processes of both meet. torchrun's store has them still when
  // it starts the processes again.
  if (worker.use_agent_store && worker.restart_count > 0) {
    store = c10::make_intrusive<c10d::PrefixStore>(fmt::format("/worker/attempt_{}", worker.restart_count),
                                                   store);
  }
  return c10::make_intrusive<c10d::PrefixStore>(keys, store);
}

bool has_nccl(c10d::ProcessGroup& group, c10::Device device) {
  return device.is_cuda() && group.getBackend(device.type()) != group.getBackend(c10::DeviceType::CPU);
}

std::unique_ptr<detail::PeerCheck> open_peer_check(const WorkerEnv& worker, std::chrono::milliseconds timeout,
                                                   c10::Device device, const std::string& keys,
                                                   const c10::intrusive_ptr<c10d::ProcessGroup>& group) {
  if (!worker.use_agent_store) return nullptr;
  const auto calls = [group, device] {
    std::uint64_t begun = group->getBackend(c10::DeviceType::CPU)->getSequenceNumberForGroup();
    if (has_nccl(*group, device))
      begun += group->getBackend(c10::DeviceType::CUDA)->getSequenceNumberForGroup();
    return begun;
  };
  return std::make_unique<detail::PeerCheck>(open_store(worker, timeout, keys), worker.rank,
                                             worker.world_size, calls);
}

c10::intrusive_ptr<c10d::ProcessGroup> join(const WorkerEnv& worker, std::chrono::milliseconds timeout,
                                            c10::Device device, CudaBackend cuda_backend,
                                            CpuBackend cpu_backend, const std::string& keys) {
  const Store all_keys = open_store(worker, timeout, keys);
  all_keys->set(detail::joined_key(worker.rank), "1");
  const Store store = c10::make_intrusive<c10d::PrefixStore>("0/", all_keys);
  auto group = c10::make_intrusive<c10d::ProcessGroup>(store, worker.rank, worker.world_size);
  group->setDefaultBackend(c10d::ProcessGroup::BackendType::GLOO);
  const auto on_cpu = detail::make_cpu_backend(store, worker.rank, worker.world_size, timeout,
                                               cpu_backend == CpuBackend::shared_memory);
  group->setBackend(c10::DeviceType::CPU, c10d::ProcessGroup::BackendType::GLOO, on_cpu);
  if (device.is_cuda() && cuda_backend == CudaBackend::gloo) {
    group->setBackend(c10::DeviceType::CUDA, c10d::ProcessGroup::BackendType::GLOO, on_cpu);
  } else if (device.is_cuda()) {
    group->setBackend(
        c10::DeviceType::CUDA, c10d::ProcessGroup::BackendType::NCCL,
        detail::cuda_table().make_nccl_backend(store, worker.rank, worker.world_size, timeout, device));
    group->setBoundDeviceId(device);
  }
  group->setGroupName("0");
  group->setGroupDesc("default_pg");
  return group;
}

CpuBackend cpu_backend_of(const Environment& environment) {
  constexpr std::string_view kVariable = "ACC_CPU_BACKEND";
  const std::string name = environment.get(kVariable, "shared_memory");
  if (name == "shared_memory") return CpuBackend::shared_memory;
  if (name == "gloo") return CpuBackend::gloo;
  throw Error({.kind = ErrorKind::usage,
               .what = fmt::format("must be shared_memory or gloo, not '{}'", name),
               .where = std::string(kVariable)});
}

// Gloo writes to its sockets without MSG_NOSIGNAL: by default, SIGPIPE would end a process when another one
// has ended, before it can report that. Python ignores the signal as well.
void ignore_broken_pipes() {
  struct sigaction action = {};
  if (::sigaction(SIGPIPE, nullptr, &action) == 0 && action.sa_handler == SIG_DFL) ::signal(SIGPIPE, SIG_IGN);
}

std::string message_of(const std::exception& error) {
  // c10::Error's what() contains a backtrace.
  const auto* from_torch = dynamic_cast<const c10::Error*>(&error);
  return from_torch != nullptr ? from_torch->what_without_backtrace() : error.what();
}

// Its values in memory: those of conj() and imag() are marked to be conjugated or negated when they are read.
at::Tensor plain(const at::Tensor& tensor) {
  return tensor.detach().resolve_conj().resolve_neg().contiguous();
}

// The type in which the values of all processes are added before they are divided: a sum in the type of
// small numbers could overflow, though their mean does not.
at::ScalarType type_of_sums(at::ScalarType type) {
  if (at::isIntegralType(type, /*includeBool=*/true))
    return c10::elementSize(type) <= 2 ? at::kFloat : at::kDouble;
  return type == at::kHalf || type == at::kBFloat16 ? at::kFloat : type;
}

// Whether LibTorch or Gloo threw it about a collective operation, whatever it says.
bool is_of_other_processes(const std::exception& error) {
  return dynamic_cast<const c10::DistError*>(&error) != nullptr ||
         dynamic_cast<const detail::MemoryFailure*>(&error) != nullptr ||
         std::string_view(error.what()).find("/gloo/") != std::string_view::npos;
}

// "Exception raised from wait at /pytorch/torch/csrc/distributed/c10d/Work.cpp:90 (most recent call first)"
bool was_thrown_in_c10d(const c10::Error& error) {
  const c10::Backtrace& backtrace = error.backtrace();
  if (!backtrace) return false;
  const std::string& text = backtrace->get();
  return text.substr(0, text.find('\n')).find("/torch/csrc/distributed/") != std::string::npos;
}

// Not one of the program or of a device, in a backward or forward, whose words may be the same: "CUDA error:
// the launch timed out and was terminated".
bool can_be_of_other_processes(const std::exception& error) {
  const auto* from_torch = dynamic_cast<const c10::Error*>(&error);
  return is_of_other_processes(error) || (from_torch != nullptr && was_thrown_in_c10d(*from_torch)) ||
         dynamic_cast<const detail::DifferentCalls*>(&error) != nullptr;
}

// Whether Gloo and NCCL send the type.
bool is_sent_as_it_is(at::ScalarType type) {
  constexpr std::array kTypes{at::kFloat, at::kDouble, at::kHalf, at::kBFloat16, at::kByte,
                              at::kChar,  at::kInt,    at::kLong, at::kBool};
  return std::ranges::find(kTypes, type) != kTypes.end();
}

// Tensors are sent as bytes, since Gloo does not support all types. One element is contiguous whatever its
// stride is, which another type does not take.
at::Tensor as_bytes(const at::Tensor& contiguous) {
  return contiguous.as_strided({contiguous.numel()}, {1}).view(at::kByte);
}

// Calls the function by LibTorch's new name, or by the old one, which newer versions deprecate.
template <class Group>
auto gather_into(Group& group, at::Tensor& output, at::Tensor& input) {
  if constexpr (requires { group.all_gather_single(output, input); }) {
    return group.all_gather_single(output, input);
  } else {
    return group._allgather_base(output, input);
  }
}

}  // namespace

struct ProcessGroup::Impl {
  c10::intrusive_ptr<c10d::ProcessGroup> group = {};
  std::chrono::milliseconds timeout = {};
  c10::Device device = c10::Device(c10::kCPU);
  // Null if the launcher does not serve the store: rank 0's store ends with rank 0, and LibTorch logs that at
  // length.
  std::unique_ptr<detail::PeerCheck> peer_check = {};
  // Whether this process waits no longer for an operation that has begun, since the others will not take
  // part.
  bool has_abandoned_operation = false;

  // Gloo's threads are in it until the timeout, and its destructor waits for them: then it is left to them.
  ~Impl() {
    if (!has_abandoned_operation) return;
    auto backend = group->getBackend(c10::DeviceType::CPU);
    if (!detail::shares_memory_with_all(*backend)) (void)backend.release();
  }

  // Whether Gloo takes the maximum: a NaN would be lost or kept depending on the ranks that have it.
  bool loses_nans(const at::Tensor& tensor) const {
    return tensor.is_floating_point() && tensor.device().is_cpu() &&
           !detail::shares_memory_with_all(*group->getBackend(c10::DeviceType::CPU));
  }

  void set_phase(std::string_view where, std::string_view doing) const {
    if (peer_check) peer_check->set_phase(fmt::format("{} {}", where, doing));
  }

  static std::vector<int> lost_ranks(const detail::CollectiveContext& context) {
    return context.peers ? context.peers->absent : std::vector<int>();
  }

  void with_explained_errors(std::string_view doing, const std::function<void()>& function) const {
    set_phase("in", doing);
    try {
      function();
    } catch (const std::exception& error) {
      if (dynamic_cast<const Error*>(&error) != nullptr &&
          dynamic_cast<const detail::MemoryFailure*>(&error) == nullptr)
        throw;
      if (!can_be_of_other_processes(error)) throw;
      const std::string text = message_of(error);
      detail::CollectiveContext context{.rank = group->getRank(),
                                        .size = group->getSize(),
                                        .doing = doing,
                                        .timeout = timeout,
                                        .peers = {}};
      if (!detail::explain_collective_failure(text, context)) {
        if (!is_of_other_processes(error)) throw;
        throw Error({.kind = ErrorKind::system,
                     .what = detail::first_line(text),
                     .where = fmt::format("rank {}, {}", context.rank, doing)});
      }
      if (peer_check) {
        const QuietLog quiet;
        context.peers = peer_check->report();
      }
      const Error explained = *detail::explain_collective_failure(text, context);
      write_error_file(explained.what(), FailureRole::consequence, lost_ranks(context));
      throw Error(explained);
    }
    set_phase("after", doing);
  }

  // What NCCL's watchdog, which ends the process, has found out about the others: over NCCL no call waits for
  // them, so none could throw.
  std::optional<detail::UncaughtConsequence> explain_end(const std::exception& error) const {
    const std::string text = message_of(error);
    if (!is_of_other_processes(error) || text.find("CUDA error") != std::string::npos) return std::nullopt;
    detail::CollectiveContext context{
        .rank = group->getRank(), .size = group->getSize(), .doing = "NCCL", .timeout = timeout, .peers = {}};
    if (!detail::explain_collective_failure(text, context)) return std::nullopt;
    if (peer_check) context.peers = peer_check->report();
    return detail::UncaughtConsequence{.text = detail::explain_collective_failure(text, context)->what(),
                                       .lost_ranks = lost_ranks(context)};
  }

  // Over Gloo a comparison of which the others do not know would wait for them until the timeout.
  void wait_or_find_others_elsewhere(c10d::Work& work) try {
    if (!peer_check) return;
    detail::wait_or_find_others_elsewhere(work, [this] {
      const QuietLog quiet;
      const detail::PeerPosition own = peer_check->own_position();
      return detail::others_are_elsewhere(own, peer_check->positions(), group->getSize());
    });
  } catch (const detail::DifferentCalls&) {
    has_abandoned_operation = true;
    throw;
  }

  // In `function` LibTorch does nothing but communicate, so all its exceptions are about the other processes.
  void together(std::string_view doing, const std::function<void()>& function) const {
    const detail::ProgressCollective collective(doing);
    try {
      const at::NoGradGuard no_grad;
      with_explained_errors(doing, function);
    } catch (const Error&) {
      throw;
    } catch (const std::exception& error) {
      throw Error({.kind = ErrorKind::system,
                   .what = detail::first_line(message_of(error)),
                   .where = fmt::format("rank {}, {}", group->getRank(), doing)});
    }
  }
};

ProcessGroup::ProcessGroup(const WorkerEnv& worker, std::chrono::milliseconds timeout, c10::Device device,
                           CudaBackend cuda_backend, std::optional<CpuBackend> cpu_backend)
    : impl_(std::make_unique<Impl>()) {
  ignore_broken_pipes();
  impl_->timeout = timeout;
  impl_->device = device;
  const CpuBackend backend = cpu_backend ? *cpu_backend : cpu_backend_of(Environment::of_process());
  try {
    const QuietLog quiet;
    const std::string keys = next_group_keys();
    const detail::JoinWatch watch(worker, [worker, keys] {
      constexpr std::chrono::seconds kConnectTimeout{1};
      return open_store(worker, kConnectTimeout, keys, StoreRole::observer);
    });
    impl_->group = join(worker, timeout, device, cuda_backend, backend, keys);
    impl_->peer_check = open_peer_check(worker, timeout, device, keys, impl_->group);
    if (has_nccl(*impl_->group, device)) {
      detail::explain_uncaught_exceptions(
          [impl = impl_.get()](const std::exception& error) { return impl->explain_end(error); });
    }
  } catch (const std::exception& error) {
    const detail::CollectiveContext context{
        .rank = worker.rank, .size = worker.world_size, .doing = "join", .timeout = timeout, .peers = {}};
    const Error explained = detail::explain_join_failure(
        message_of(error), context, fmt::format("{}:{}", worker.master_addr, worker.master_port));
    if (explained.kind() == ErrorKind::rendezvous)
      write_error_file(explained.what(), FailureRole::consequence);
    throw Error(explained);
  }
}

ProcessGroup::~ProcessGroup() {
  if (!has_nccl(*impl_->group, impl_->device)) return;
  try {
    // Gloo needs no shutdown. NCCL's threads must end here, before the process exits.
    impl_->group->getBackend(c10::DeviceType::CUDA)->shutdown();
  } catch (const std::exception&) {  // NOLINT: the other processes may have ended already
  }
  detail::explain_uncaught_exceptions(nullptr);
}

int ProcessGroup::rank() const {
  return impl_->group->getRank();
}
int ProcessGroup::size() const {
  return impl_->group->getSize();
}
std::chrono::milliseconds ProcessGroup::timeout() const {
  return impl_->timeout;
}
CpuBackend ProcessGroup::cpu_backend() const {
  return detail::uses_shared_memory(*impl_->group->getBackend(c10::DeviceType::CPU))
             ? CpuBackend::shared_memory
             : CpuBackend::gloo;
}
c10d::ProcessGroup& ProcessGroup::native() const {
  return *impl_->group;
}

void ProcessGroup::with_explained_errors(std::string_view doing, const std::function<void()>& function) {
  impl_->with_explained_errors(doing, function);
}

void ProcessGroup::all_reduce(at::Tensor& tensor, ReduceOp op) {
  if (op == ReduceOp::max && impl_->loses_nans(tensor)) {
    tensor = all_gather(tensor).amax(0);
    return;
  }
  const at::ScalarType type = tensor.scalar_type();
  const at::ScalarType summed = op == ReduceOp::mean ? type_of_sums(type) : type;
  std::vector<at::Tensor> tensors{plain(tensor).to(summed, /*non_blocking=*/false, /*copy=*/true)};
  c10d::AllreduceOptions options;
  // A sum of truth values is true if one of them is; as bytes they would add up to 2.
  const bool takes_most = op == ReduceOp::max || summed == at::kBool;
  options.reduceOp = takes_most ? c10d::ReduceOp::MAX : c10d::ReduceOp::SUM;
  impl_->together("all_reduce", [&] { impl_->group->allreduce(tensors, options)->wait(); });
  if (op == ReduceOp::mean)
    tensors[0] = tensors[0].div(size()).to(at::isIntegralType(type, true) ? at::kFloat : type);
  tensor = tensors[0];
}

at::Tensor ProcessGroup::all_gather(const at::Tensor& tensor) {
  return gather_all(tensor, "all_gather", /*compares=*/false);
}

at::Tensor ProcessGroup::all_gather_to_compare(const at::Tensor& tensor, std::string_view doing) {
  return gather_all(tensor, doing, /*compares=*/true);
}

at::Tensor ProcessGroup::gather_all(const at::Tensor& tensor, std::string_view doing, bool compares) {
  at::Tensor input = plain(tensor);
  std::vector<std::int64_t> shape = input.sizes().vec();
  shape.insert(shape.begin(), size());
  at::Tensor output = at::empty(shape, input.options());
  if (input.numel() == 0) return output;
  at::Tensor bytes_in = as_bytes(input);
  at::Tensor bytes_out = as_bytes(output);
  impl_->together(doing, [&] {
    const auto work = gather_into(*impl_->group, bytes_out, bytes_in);
    if (compares) impl_->wait_or_find_others_elsewhere(*work);
    work->wait();
  });
  return output;
}

void ProcessGroup::broadcast(at::Tensor& tensor, int from) {
  if (tensor.numel() == 0) return;
  const at::NoGradGuard no_grad;
  const at::Tensor contiguous = plain(tensor);
  std::vector<at::Tensor> bytes{as_bytes(contiguous)};
  c10d::BroadcastOptions options;
  options.rootRank = from;
  impl_->together("broadcast", [&] { impl_->group->broadcast(bytes, options)->wait(); });
  if (contiguous.data_ptr() != tensor.data_ptr()) tensor.detach().copy_(contiguous);
}

void ProcessGroup::broadcast(const std::vector<at::Tensor>& tensors, int from) {
  constexpr std::size_t kMessageBytes = 250U << 20U;
  std::vector<at::Tensor> known;
  for (at::Tensor tensor : tensors) {
    if (is_sent_as_it_is(tensor.scalar_type())) {
      known.push_back(std::move(tensor));
    } else {
      broadcast(tensor, from);  // as bytes
    }
  }
  if (known.empty()) return;
  impl_->together("broadcast", [&] { c10d::broadcast_coalesced(impl_->group, known, kMessageBytes, from); });
}

void ProcessGroup::barrier() {
  c10d::BarrierOptions options;
  if (impl_->device.is_cuda()) {
    options.device = impl_->device;
    options.device_ids = {impl_->device.index()};
  }
  impl_->together("wait_for_everyone", [&] { impl_->group->barrier(options)->wait(); });
}

}  // namespace acc
