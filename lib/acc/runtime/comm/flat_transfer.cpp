// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/comm/flat_transfer.hpp"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/add.h>
#include <ATen/ops/empty.h>

#include <memory>
#include <mutex>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <utility>
#include <vector>

#include "acc/base/error.hpp"
#include "acc/runtime/comm/cpu/cpu_backend.hpp"

namespace acc::detail {
namespace {

using Work = c10::intrusive_ptr<c10d::Work>;

void wait_for(std::vector<Work>& works) {
  for (const Work& work : works) work->wait();
  works.clear();
}

bool uses_nccl(ProcessGroup& group, const at::Tensor& flat) {
  if (flat.device().is_cpu()) return false;
  auto& native = group.native();
  if (native.getBackend(flat.device().type()) != native.getBackend(c10::DeviceType::CPU)) return true;
  throw Error({.what = "sharded models on CUDA devices need NCCL",
               .where = "process group",
               .hint = "give each process a device of its own, and leave cuda_backend as it is"});
}

// LibTorch's new names, or the old ones, which newer versions deprecate.
template <class Group>
Work all_gather(Group& group, at::Tensor output, at::Tensor input) {
  if constexpr (requires { group.all_gather_single(output, input); }) {
    return group.all_gather_single(output, input);
  } else {
    return group._allgather_base(output, input);
  }
}
template <class Group>
Work reduce_scatter(Group& group, at::Tensor output, at::Tensor input) {
  if constexpr (requires { group.reduce_scatter_single(output, input); }) {
    return group.reduce_scatter_single(output, input);
  } else {
    return group._reduce_scatter_base(output, input);
  }
}

}  // namespace

struct FlatTransfer::Flight {
  // Held until everything has arrived and left, or is given up.
  std::vector<at::Tensor> memory = {};
  std::vector<Work> received = {};
  std::vector<Work> sent = {};

  bool is_over() const { return received.empty() && sent.empty(); }
};

void FlatTransfer::wait_received() {
  if (flight_) wait_for(flight_->received);
}
void FlatTransfer::wait_sent() {
  if (flight_) wait_for(flight_->sent);
}

namespace {

// Keeps what nobody has waited for. Gloo drops a message whose buffer is gone, and the connection then stands
// still, so that the next operation of any kind would hang.
void keep_or_delete(FlatTransfer::Flight* flight) {
  static std::mutex mutex;
  static auto* const flights = new std::vector<std::unique_ptr<FlatTransfer::Flight>>();
  std::unique_ptr<FlatTransfer::Flight> owned(flight);
  if (owned->is_over()) return;
  const std::lock_guard lock(mutex);
  flights->push_back(std::move(owned));
}

std::shared_ptr<FlatTransfer::Flight> new_flight() {
  return {new FlatTransfer::Flight(), &keep_or_delete};
}

// One operation that receives and sends, with the memory that it uses.
FlatTransfer transfer_of(const Work& work, std::vector<at::Tensor> memory) {
  auto flight = new_flight();
  flight->memory = std::move(memory);
  flight->received = {work};
  flight->sent = {work};
  return FlatTransfer(std::move(flight));
}

// Sends `outgoing(rank)` to each other process and receives its part in `incoming(rank)`.
template <class Outgoing, class Incoming>
std::shared_ptr<FlatTransfer::Flight> send_and_receive(ProcessGroup& group, c10d::Backend& gloo, int tag,
                                                       Outgoing outgoing, Incoming incoming) {
  auto flight = new_flight();
  // Begins with the next rank, so that not all send to the first one first.
  for (int step = 1; step < group.size(); ++step) {
    const int from = (group.rank() + group.size() - step) % group.size();
    std::vector<at::Tensor> target{incoming(from)};
    flight->received.push_back(gloo.recv(target, from, tag));
    flight->memory.push_back(target[0]);
  }
  for (int step = 1; step < group.size(); ++step) {
    const int to = (group.rank() + step) % group.size();
    std::vector<at::Tensor> part{outgoing(to)};
    flight->sent.push_back(gloo.send(part, to, tag));
    flight->memory.push_back(part[0]);
  }
  return flight;
}

}  // namespace

FlatTransfer start_all_gather(ProcessGroup& group, const at::Tensor& flat, const at::Tensor& own_part,
                              int tag) {
  const at::NoGradGuard no_grad;
  if (uses_nccl(group, flat)) {
    return transfer_of(all_gather(group.native(), flat, own_part), {flat, own_part});
  }
  const std::int64_t length = own_part.numel();
  const auto part_of = [&](int rank) { return flat.narrow(0, rank * length, length); };
  const auto backend = group.native().getBackend(c10::DeviceType::CPU);
  if (!shares_memory_with_all(*backend))
    return FlatTransfer(send_and_receive(group, *backend, tag, [&](int) { return own_part; }, part_of));
  std::vector<at::Tensor> inputs{own_part};
  std::vector<std::vector<at::Tensor>> outputs(1);
  for (int rank = 0; rank < group.size(); ++rank)
    outputs[0].push_back(rank == group.rank() ? own_part : part_of(rank));
  return transfer_of(backend->allgather(outputs, inputs), {flat, own_part});
}

FlatReduction start_reduce_scatter(ProcessGroup& group, at::Tensor flat, int tag) {
  const at::NoGradGuard no_grad;
  FlatReduction reduction;
  reduction.rank_ = group.rank();
  reduction.size_ = group.size();
  const std::int64_t length = flat.numel() / group.size();
  if (uses_nccl(group, flat)) {
    reduction.is_summed_ = true;
    reduction.flat_ = flat.to(at::kFloat);
    reduction.parts_ = at::empty({length}, reduction.flat_.options());
    reduction.transfer_ = transfer_of(reduce_scatter(group.native(), reduction.parts_, reduction.flat_),
                                      {reduction.parts_, reduction.flat_});
    return reduction;
  }
  reduction.parts_ = at::empty({length * (group.size() - 1)}, flat.options());
  const auto outgoing = [&](int rank) { return flat.narrow(0, rank * length, length); };
  const auto incoming = [&](int rank) {
    return reduction.parts_.narrow(0, (rank < group.rank() ? rank : rank - 1) * length, length);
  };
  const auto backend = group.native().getBackend(c10::DeviceType::CPU);
  if (shares_memory_with_all(*backend)) {
    std::vector<at::Tensor> inputs;
    std::vector<at::Tensor> outputs;
    for (int rank = 0; rank < group.size(); ++rank) {
      inputs.push_back(outgoing(rank));
      outputs.push_back(rank == group.rank() ? inputs.back() : incoming(rank));
    }
    reduction.transfer_ = transfer_of(backend->alltoall(outputs, inputs), {flat, reduction.parts_});
  } else {
    reduction.transfer_ = FlatTransfer(send_and_receive(group, *backend, tag, outgoing, incoming));
  }
  reduction.flat_ = std::move(flat);
  return reduction;
}

at::Tensor FlatReduction::finish() {
  const at::NoGradGuard no_grad;
  transfer_.wait_received();
  transfer_.wait_sent();
  const std::int64_t length = flat_.numel() / size_;
  const auto part = [&](int rank) {
    if (rank == rank_) return flat_.narrow(0, rank * length, length);
    return parts_.narrow(0, (rank < rank_ ? rank : rank - 1) * length, length);
  };
  at::Tensor sum = is_summed_ ? parts_ : at::empty({length}, flat_.options().dtype(at::kFloat));
  if (!is_summed_) {
    int next = 2;
    if (flat_.scalar_type() == at::kFloat && size_ > 1) {
      at::add_out(sum, part(0), part(1));
    } else {
      sum.copy_(part(0));
      next = 1;
    }
    for (; next < size_; ++next) sum.add_(part(next));
  }
  sum.mul_(1.0 / size_);
  *this = {};
  return sum;
}

}  // namespace acc::detail
