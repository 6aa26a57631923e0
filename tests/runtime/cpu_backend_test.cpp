// SPDX-License-Identifier: Apache-2.0
// Runs on several processes, without an Accelerator: the process groups are those of each case.
#include <ATen/Context.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/sparse_coo_tensor.h>
#include <sys/resource.h>

#include <chrono>
#include <cstdio>
#include <optional>
#include <random>
#include <string>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <vector>

#include "acc/base/environment.hpp"
#include "acc/base/error.hpp"
#include "acc/base/worker_env.hpp"
#include "acc/runtime/comm/missing_peers.hpp"
#include "acc/runtime/comm/process_group.hpp"
#include "support/catch.hpp"
#include "support/torch_tensor.hpp"

namespace {

using acc::CpuBackend;
using acc::ProcessGroup;
using c10d::ReduceOp;
using namespace std::chrono_literals;

const acc::WorkerEnv& worker() {
  static const acc::WorkerEnv worker = acc::read_worker_env(acc::Environment::of_process());
  return worker;
}

std::unique_ptr<ProcessGroup> new_group(std::optional<CpuBackend> backend,
                                        std::chrono::milliseconds timeout = 1min) {
  return std::make_unique<ProcessGroup>(worker(), timeout, c10::Device(c10::kCPU), acc::CudaBackend::nccl,
                                        backend);
}

at::Tensor reduced(ProcessGroup& group, const at::Tensor& tensor, ReduceOp::RedOpType op) {
  std::vector<at::Tensor> copy{tensor.clone()};
  c10d::AllreduceOptions options;
  options.reduceOp = op;
  group.native().allreduce(copy, options)->wait();
  return copy[0];
}

}  // namespace

TEST_CASE("cpu_backend: processes of one machine share memory unless one of them wants Gloo", "[backend]") {
  const bool alone = worker().world_size == 1;
  CHECK(new_group(std::nullopt)->cpu_backend() == (alone ? CpuBackend::gloo : CpuBackend::shared_memory));
  const auto mixed = new_group(worker().rank == 0 ? CpuBackend::gloo : CpuBackend::shared_memory);
  CHECK(mixed->cpu_backend() == CpuBackend::gloo);
  at::Tensor local = at::ones({3});
  mixed->all_reduce(local, acc::ReduceOp::sum);
  CHECK(local.equal(at::full({3}, static_cast<float>(worker().world_size))));
}

TEST_CASE("cpu_backend: all use Gloo if one of them cannot make the memory", "[backend]") {
  rlimit before = {};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
  const rlimit small = {.rlim_cur = 4096, .rlim_max = before.rlim_max};
  if (worker().rank == 0) REQUIRE(::setrlimit(RLIMIT_FSIZE, &small) == 0);
  const auto group = new_group(CpuBackend::shared_memory);
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &before) == 0);
  CHECK(group->cpu_backend() == CpuBackend::gloo);
  group->barrier();
}

TEST_CASE("cpu_backend: results are Gloo's, to the bit on two processes", "[backend]") {
  const auto gloo = new_group(CpuBackend::gloo);
  const auto memory = new_group(CpuBackend::shared_memory);
  at::manual_seed(static_cast<std::uint64_t>(worker().rank) + 1);
  for (const auto type :
       {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16, at::kInt, at::kLong, at::kByte, at::kChar}) {
    for (const auto op : {ReduceOp::SUM, ReduceOp::AVG, ReduceOp::MIN, ReduceOp::MAX, ReduceOp::PRODUCT}) {
      if (op == ReduceOp::AVG && !c10::isFloatingType(type)) continue;
      for (const std::int64_t count : {1, 7, 10'000, 300'001}) {
        const at::Tensor local = c10::isFloatingType(type)
                                     ? at::randn({count}).to(type)
                                     : at::randint(0, 100, {count}, at::TensorOptions(type));
        const at::Tensor gloo_result = reduced(*gloo, local, op);
        const at::Tensor memory_result = reduced(*memory, local, op);
        INFO(c10::toString(type) << ", operation " << static_cast<int>(op) << ", " << count << " elements");
        if (worker().world_size <= 2 || !c10::isFloatingType(type)) {
          CHECK(memory_result.equal(gloo_result));
        } else if (type == at::kFloat || type == at::kDouble) {
          CHECK(memory_result.sub(gloo_result).abs().max().item<double>() <=
                1e-6 * std::max(1.0, gloo_result.abs().max().item<double>()));
        }
        // All processes have the same bits.
        const at::Tensor all = memory->all_gather(memory_result);
        CHECK(all.equal(memory_result.expand_as(all)));
      }
    }
  }
}

TEST_CASE("cpu_backend: all_gather, all_to_all, broadcast and barrier, and what Gloo does beside them",
          "[backend]") {
  const auto group = new_group(CpuBackend::shared_memory);
  const int size = group->size();
  for (const std::int64_t count : {0, 1, 1'000'000}) {
    const at::Tensor all = group->all_gather(at::full({count}, group->rank(), at::kLong));
    for (int rank = 0; rank < size; ++rank) CHECK(all[rank].equal(at::full({count}, rank, at::kLong)));
    at::Tensor from_last = at::full({count}, group->rank(), at::kLong);
    group->broadcast(from_last, size - 1);
    CHECK(from_last.equal(at::full({count}, size - 1, at::kLong)));
  }
  std::vector<at::Tensor> inputs{at::full({4}, group->rank(), at::kFloat)};
  std::vector<std::vector<at::Tensor>> outputs(1);
  for (int rank = 0; rank < size; ++rank) outputs[0].push_back(at::empty({4}));
  group->native().allgather(outputs, inputs)->wait();
  CHECK(outputs[0].back().equal(at::full({4}, static_cast<float>(size - 1))));
  if (group->cpu_backend() == CpuBackend::shared_memory) {
    std::vector<at::Tensor> parts;
    std::vector<at::Tensor> received;
    for (int rank = 0; rank < size; ++rank) {
      parts.push_back(at::full({70'000}, 10 * group->rank() + rank, at::kInt));
      received.push_back(at::empty({70'000}, at::kInt));
    }
    group->native().alltoall(received, parts)->wait();
    for (int rank = 0; rank < size; ++rank)
      CHECK(received[static_cast<std::size_t>(rank)].equal(
          at::full({70'000}, 10 * rank + group->rank(), at::kInt)));
  }
  std::vector<at::Tensor> to_first{at::ones({4})};
  group->native().reduce(to_first)->wait();
  if (group->rank() == 0) CHECK(to_first[0].equal(at::full({4}, static_cast<float>(size))));
  group->barrier();
}

TEST_CASE("cpu_backend: tensors whose memory has another order are gathered element by element, as by Gloo",
          "[backend]") {
  for (const CpuBackend backend : {CpuBackend::gloo, CpuBackend::shared_memory}) {
    const auto group = new_group(backend);
    const auto size = static_cast<std::size_t>(group->size());
    const auto of_rank = [](std::size_t rank) {
      return at::arange(6).reshape({2, 3}).t() + 10 * static_cast<std::int64_t>(rank);
    };
    const at::Tensor local = of_rank(static_cast<std::size_t>(group->rank()));
    const auto empty = [](std::size_t rank) {
      return rank % 2 == 0 ? at::empty({3, 2}, at::kLong) : at::empty({2, 3}, at::kLong).t();
    };
    std::vector<at::Tensor> inputs{local};
    std::vector<std::vector<at::Tensor>> outputs(1);
    for (std::size_t rank = 0; rank < size; ++rank) outputs[0].push_back(empty(rank));
    group->native().allgather(outputs, inputs)->wait();
    for (std::size_t rank = 0; rank < size; ++rank) CHECK(outputs[0][rank].equal(of_rank(rank)));
    if (group->cpu_backend() != CpuBackend::shared_memory) continue;  // Gloo has no all_to_all of lists
    const std::vector<at::Tensor> parts(size, local);
    std::vector<at::Tensor> sent = parts;
    std::vector<at::Tensor> received;
    for (std::size_t rank = 0; rank < size; ++rank) received.push_back(empty(rank));
    group->native().alltoall(received, sent)->wait();
    for (std::size_t rank = 0; rank < size; ++rank) CHECK(received[rank].equal(of_rank(rank)));
  }
}

TEST_CASE("cpu_backend: several operations at once are done, and futures give their results", "[backend]") {
  const auto group = new_group(CpuBackend::shared_memory);
  std::vector<std::vector<at::Tensor>> tensors;
  std::vector<c10::intrusive_ptr<c10d::Work>> works;
  for (int i = 0; i < 20; ++i) {
    tensors.push_back({at::full({1 + 40'000 * (i % 5)}, static_cast<float>(i))});
    works.push_back(group->native().allreduce(tensors.back()));
  }
  auto doubled = works.back()->getFuture()->then(
      [](c10::ivalue::Future& sum) { return c10::IValue(sum.value().toTensorVector().at(0).mul(2)); },
      c10::TensorType::get());
  doubled->waitAndThrow();
  CHECK(doubled->value().toTensor()[0].item<float>() == 2.0F * 19 * static_cast<float>(group->size()));
  for (std::size_t i = 0; i < works.size(); ++i) {
    CHECK(works[i]->wait());
    CHECK(works[i]->isCompleted());
    CHECK(tensors[i][0].max().item<float>() == static_cast<float>(i) * static_cast<float>(group->size()));
  }
}

TEST_CASE("cpu_backend: sparse tensors are summed beside other operations, also where a rank has none",
          "[backend]") {
  const auto group = new_group(GENERATE(CpuBackend::gloo, CpuBackend::shared_memory));
  const int size = group->size();
  const auto type = GENERATE(at::kFloat, at::kDouble, at::kBFloat16);
  const auto of_rank = [type](int round, int rank) {
    at::manual_seed(static_cast<std::uint64_t>(round * 10 + rank));
    const std::int64_t count = round % 3 == rank ? 0 : 40;
    return at::sparse_coo_tensor(at::randint(0, 50, {1, count}, at::kLong),
                                 at::randint(-8, 8, {count, 16}, at::TensorOptions(type)), {50, 16});
  };
  for (int round = 0; round < 100; ++round) {
    std::vector<at::Tensor> dense{at::ones({1000})};
    std::vector<at::Tensor> first{of_rank(round, group->rank())};
    std::vector<at::Tensor> second{first[0].mul(2)};
    at::Tensor expected = of_rank(round, 0).to_dense();
    for (int rank = 1; rank < size; ++rank) expected.add_(of_rank(round, rank).to_dense());
    const auto works = {group->native().allreduce(dense), group->native().allreduce(first),
                        group->native().allreduce(second)};
    for (const auto& work : works) CHECK(work->wait());
    CHECK(dense[0].equal(at::full({1000}, static_cast<float>(size))));
    CHECK(first[0].is_coalesced());
    CHECK(first[0].to_dense().equal(expected));
    CHECK(second[0].to_dense().equal(expected.mul(2)));
  }
}

TEST_CASE("cpu_backend: another value of ACC_CPU_BACKEND is refused", "[variable]") {
  try {
    new_group(std::nullopt);
    FAIL("joined");
  } catch (const acc::Error& error) {
    CHECK(std::string(error.what()).find("ACC_CPU_BACKEND: must be shared_memory or gloo, not 'mpi'") !=
          std::string::npos);
  }
}

// The other ranks are Python's, see mixed_ranks.sh.
TEST_CASE("cpu_backend: beside Python's processes all use Gloo", "[.mixed]") {
  const auto group = new_group(CpuBackend::shared_memory);
  CHECK(group->cpu_backend() == CpuBackend::gloo);
  at::Tensor sum = at::ones({3});
  group->all_reduce(sum, acc::ReduceOp::sum);
  CHECK(sum.equal(at::full({3}, static_cast<float>(worker().world_size))));
}

// The ranks are on two machines, see cpu_backend_faults.py.
TEST_CASE("cpu_backend: machines add in memory, and the results of machines over Gloo", "[.machines]") {
  const auto group = new_group(CpuBackend::shared_memory);
  REQUIRE(group->cpu_backend() == CpuBackend::shared_memory);
  const int size = group->size();
  const auto of_rank = [](int rank, at::ScalarType type, std::int64_t count) {
    at::manual_seed(static_cast<std::uint64_t>(rank) + 1);
    return c10::isFloatingType(type) ? at::randn({count}).to(type) : at::randint(0, 9, {count}, type);
  };
  for (const auto type :
       {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16, at::kInt, at::kLong, at::kByte, at::kChar}) {
    for (const auto op : {ReduceOp::SUM, ReduceOp::AVG, ReduceOp::MIN, ReduceOp::MAX, ReduceOp::PRODUCT}) {
      if (op == ReduceOp::AVG && !c10::isFloatingType(type)) continue;
      for (const std::int64_t count : {1, 7, 300'001}) {
        INFO(c10::toString(type) << ", operation " << static_cast<int>(op) << ", " << count << " elements");
        at::Tensor expected = of_rank(0, type, count).to(at::kDouble);
        for (int rank = 1; rank < size; ++rank) {
          const at::Tensor other = of_rank(rank, type, count).to(at::kDouble);
          if (op == ReduceOp::MIN) expected = expected.minimum(other);
          if (op == ReduceOp::MAX) expected = expected.maximum(other);
          if (op == ReduceOp::PRODUCT) expected = expected.mul(other);
          if (op == ReduceOp::SUM || op == ReduceOp::AVG) expected = expected.add(other);
        }
        if (op == ReduceOp::AVG) expected = expected.div(size);
        if (!c10::isFloatingType(type)) expected = expected.to(type).to(at::kDouble);
        const at::Tensor result = reduced(*group, of_rank(group->rank(), type, count), op);
        const double allowed = type == at::kBFloat16 ? 0.05 : type == at::kHalf ? 0.01 : 1e-5;
        CHECK(result.to(at::kDouble)
                  .sub(expected)
                  .abs()
                  .le(expected.abs().add(1).mul(allowed))
                  .all()
                  .item<bool>());
        const at::Tensor all = group->all_gather(result);
        CHECK(all.equal(result.expand_as(all)));  // all processes have the same bits
      }
    }
  }
  std::vector<std::vector<at::Tensor>> tensors;
  std::vector<c10::intrusive_ptr<c10d::Work>> works;
  for (int i = 0; i < 20; ++i) {
    tensors.push_back({at::full({1 + 200'000 * (i % 5)}, static_cast<float>(i))});
    works.push_back(group->native().allreduce(tensors.back()));
  }
  works.back()->getFuture()->waitAndThrow();
  for (std::size_t i = 0; i < works.size(); ++i) {
    CHECK(works[i]->wait());
    CHECK(tensors[i][0].max().item<float>() == static_cast<float>(i) * static_cast<float>(size));
  }
  at::Tensor from_last = at::full({1000}, group->rank(), at::kLong);
  group->broadcast(from_last, size - 1);
  CHECK(from_last.equal(at::full({1000}, size - 1, at::kLong)));
  group->barrier();
}

// Without a launcher rank 0 serves the store, see cpu_backend_faults.py.
TEST_CASE("cpu_backend: others may be in the next group before rank 0 has ended the last", "[.regroups]") {
  auto first = new_group(CpuBackend::gloo);
  first->barrier();
  if (worker().rank == 0) {
    c10d::TCPStoreOptions options;
    options.port = worker().master_port;
    options.waitWorkers = false;
    c10d::TCPStore store(worker().master_addr, options);
    for (int rank = 1; rank < first->size(); ++rank)
      store.wait({"default_pg_1/" + acc::detail::joined_key(rank)}, 1min);
  }
  first.reset();
  const auto second = new_group(CpuBackend::gloo);
  at::Tensor sum = at::ones({1});
  second->all_reduce(sum, acc::ReduceOp::sum);
  CHECK(sum.item<float>() == static_cast<float>(second->size()));
}

// Collective operations until one of them fails, for cpu_backend_faults.py.
TEST_CASE("cpu_backend: operations without an end", "[.endless]") {
  // The time limit is that of one operation, not of the start of all processes.
  new_group(CpuBackend::gloo)->barrier();
  const auto group = new_group(
      CpuBackend::shared_memory,
      std::chrono::seconds(std::stoi(acc::Environment::of_process().get("ACC_TEST_TIMEOUT", "60"))));
  std::printf("joined %s\n", group->cpu_backend() == CpuBackend::shared_memory ? "shared_memory" : "gloo");
  std::fflush(stdout);
  std::minstd_rand chance(1);  // the same calls on all ranks
  try {
    while (true) {
      const std::int64_t count = std::int64_t{1} << (chance() % 20U);
      at::Tensor tensor = at::ones({count});
      switch (chance() % 4U) {
        case 0:
          group->barrier();
          break;
        case 1:
          group->broadcast(tensor, 0);
          break;
        case 2:
          group->all_gather(tensor);
          break;
        default:
          group->all_reduce(tensor, acc::ReduceOp::sum);
          REQUIRE(tensor[0].item<float>() == static_cast<float>(group->size()));
      }
    }
  } catch (const acc::Error& error) {
    std::printf("%s\n", error.what());
    CHECK(error.kind() == acc::ErrorKind::system);
  }
}
