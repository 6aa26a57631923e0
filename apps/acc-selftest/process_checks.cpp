// SPDX-License-Identifier: Apache-2.0
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <map>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "acc/base/environment.hpp"
#include "acc/base/worker_env.hpp"
#include "checks.hpp"

namespace acc::selftest {
namespace {

std::int64_t nanoseconds_now() {
  return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

}  // namespace

Failure check_state(Accelerator& accelerator) {
  const at::Tensor ranks = accelerator.gather(at::full({}, accelerator.process_index(), at::kLong));
  const at::Tensor sizes = accelerator.gather(at::full({}, accelerator.num_processes(), at::kLong));
  const at::Tensor pids = accelerator.gather(at::full({}, ::getpid(), at::kLong));

  const WorkerEnv worker = read_worker_env(Environment::of_process());
  if (accelerator.num_processes() != worker.world_size) return "num_processes is not WORLD_SIZE";
  if (accelerator.process_index() != worker.rank) return "process_index is not RANK";
  if (accelerator.local_process_index() != worker.local_rank) return "local_process_index is not LOCAL_RANK";
  if (!ranks.equal(at::arange(accelerator.num_processes(), at::kLong))) return "the ranks are not 0, 1, ...";
  if (!sizes.eq(accelerator.num_processes()).all().item<bool>())
    return "the processes disagree on their number";
  if (pids.numel() != accelerator.num_processes()) return "not every process answered";

  const Accelerator second;
  const bool agree = second.num_processes() == accelerator.num_processes() &&
                     second.process_index() == accelerator.process_index() &&
                     second.local_process_index() == accelerator.local_process_index() &&
                     second.device() == accelerator.device() &&
                     second.mixed_precision() == accelerator.mixed_precision() &&
                     second.process_group() == accelerator.process_group();
  if (!agree) return "a second Accelerator has another state";
  return {};
}

Failure check_process_order(Accelerator& accelerator) {
  // The main process takes its time, so that another that does not wait for it is earlier.
  constexpr std::chrono::milliseconds kWork(100);
  std::int64_t at = 0;
  accelerator.wait_for_everyone();
  accelerator.main_process_first([&] {
    if (accelerator.is_main_process()) std::this_thread::sleep_for(kWork);
    at = nanoseconds_now();
  });
  const at::Tensor times = accelerator.gather(at::full({}, at, at::kLong));
  // Compares times only on the main process's machine, where rank equals local rank, since machines have
  // different clocks.
  const bool same_machine = accelerator.process_index() == accelerator.local_process_index();
  if (same_machine && times[0].item<std::int64_t>() > at) return "began before the main process had finished";
  return {};
}

namespace {

constexpr std::array<at::ScalarType, 9> kTypes = {
    at::kFloat, at::kDouble, at::kHalf, at::kBFloat16, at::kChar, at::kByte, at::kInt, at::kLong, at::kBool};

// The input of `rank`: its bits, so that no two of 256 ranks give the same, and sums are exact in every type.
at::Tensor given_by(int rank, at::ScalarType type) {
  const at::Tensor rows = at::arange(8, at::kInt).view({8, 1}).expand({8, 2});
  return at::full({8, 2}, rank, at::kInt).bitwise_right_shift(rows).bitwise_and(1).to(type);
}

at::Tensor expected_sum(int size, at::ScalarType type) {
  at::Tensor sum = given_by(0, type).clone();
  for (int rank = 1; rank < size; ++rank) sum = sum.add(given_by(rank, type));
  return sum;
}

Failure check_type(Accelerator& accelerator, at::ScalarType type) {
  const int size = accelerator.num_processes();
  const int last = size - 1;
  const at::Tensor contribution = given_by(accelerator.process_index(), type);
  std::vector<at::Tensor> all;
  for (int rank = 0; rank < size; ++rank) all.push_back(given_by(rank, type));

  // All make the same calls, also when one has got a wrong result.
  const at::Tensor gathered = accelerator.gather(contribution);
  const at::Tensor from_first = accelerator.broadcast(contribution);
  const at::Tensor from_last = accelerator.broadcast(contribution, last);
  const at::Tensor max = accelerator.reduce(contribution, ReduceOp::max);
  const at::Tensor sum = accelerator.reduce(contribution);
  if (!gathered.equal(at::cat(all))) return "gather";
  if (!from_first.equal(all.front())) return "broadcast";
  if (!from_last.equal(all.back())) return "broadcast from the last process";
  if (!max.equal(std::get<0>(at::stack(all).max(0)))) return "reduce max";
  // The sum of bools is not a bool.
  if (type != at::kBool && !sum.equal(expected_sum(size, type))) return "reduce sum";
  return {};
}

}  // namespace

Failure check_collectives(Accelerator& accelerator) {
  Failure first;
  for (const at::ScalarType type : kTypes) {
    const Failure wrong = check_type(accelerator, type);
    if (first.empty() && !wrong.empty()) first = wrong + " is wrong for " + c10::toString(type);
  }
  const double size = accelerator.num_processes();
  const at::Tensor mean =
      accelerator.reduce(at::full({}, accelerator.process_index(), at::kDouble), ReduceOp::mean);
  if (first.empty() && mean.item<double>() != (size - 1) / 2) return "reduce mean is wrong";
  return first;
}

namespace {

using Numbers = std::vector<std::int64_t>;

Numbers count_to(std::size_t size) {
  Numbers numbers(size);
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

// The parts of all processes in rank order. All parts have the same size.
Numbers gathered(Accelerator& accelerator, const Numbers& part) {
  const at::Tensor all = accelerator.gather(at::tensor(part));
  return {all.const_data_ptr<std::int64_t>(), all.const_data_ptr<std::int64_t>() + all.numel()};
}

Failure check_list(Accelerator& accelerator, std::size_t size, bool pad) {
  const Numbers list = count_to(size);
  Numbers all = gathered(accelerator, accelerator.split_between_processes(list, pad));
  if (all.size() < size) return "lost elements";
  if (all.size() > size + (pad ? 1 : 0)) return "gave elements to several processes";
  all.resize(size);
  return all == list ? "" : "gave another order";
}

// The first `17 % processes` processes get one more.
Failure check_uneven_list(Accelerator& accelerator) {
  constexpr std::int64_t kSize = 17;
  const std::int64_t rank = accelerator.process_index();
  const std::int64_t size = accelerator.num_processes();
  Numbers wanted(static_cast<std::size_t>(kSize / size + (rank < kSize % size ? 1 : 0)));
  std::iota(wanted.begin(), wanted.end(), rank * (kSize / size) + std::min(rank, kSize % size));
  const Numbers part = accelerator.split_between_processes(count_to(static_cast<std::size_t>(kSize)));
  return part == wanted ? "" : "cut 17 elements at the wrong one";
}

Failure check_structure(Accelerator& accelerator) {
  const auto size = 2 * static_cast<std::size_t>(accelerator.num_processes());
  const auto share = accelerator.split_between_processes(
      std::map<std::string, Numbers>{{"first", count_to(size)}, {"second", count_to(size)}});
  const std::int64_t begin = 2 * std::int64_t{accelerator.process_index()};
  const Numbers wanted = {begin, begin + 1};
  return share.at("first") == wanted && share.at("second") == wanted ? "" : "cut a map at the wrong elements";
}

Failure check_rows(Accelerator& accelerator) {
  const std::int64_t rows = 2 * accelerator.num_processes() - 1;
  const at::Tensor tensor = at::arange(rows, at::kLong);
  const at::Tensor all = accelerator.gather(accelerator.split_between_processes(tensor, true));
  // One process gets no padding.
  if (all.size(0) > rows + 1) return "gave rows to several processes";
  return all.slice(0, 0, rows).equal(tensor) ? "" : "gave rows in another order";
}

}  // namespace

Failure check_where_functions_run(Accelerator& accelerator) {
  bool main = false;
  bool local_main = false;
  bool last = false;
  bool chosen = false;
  const int choice = accelerator.num_processes() / 2;
  accelerator.on_main_process([&] { main = true; });
  accelerator.on_local_main_process([&] { local_main = true; });
  accelerator.on_last_process([&] { last = true; });
  accelerator.on_process(choice, [&] { chosen = true; });
  const WorkerEnv worker = read_worker_env(Environment::of_process());
  if (main != (worker.rank == 0)) return "on_main_process";
  if (local_main != (worker.local_rank == 0)) return "on_local_main_process";
  if (last != (worker.rank == worker.world_size - 1)) return "on_last_process";
  return chosen == (worker.rank == choice) ? "" : "on_process";
}

Failure check_splitting(Accelerator& accelerator) {
  const auto twice = 2 * static_cast<std::size_t>(accelerator.num_processes());
  for (const Failure& failure :
       {check_list(accelerator, twice, false), check_list(accelerator, twice - 1, true),
        check_uneven_list(accelerator), check_structure(accelerator), check_rows(accelerator)}) {
    if (!failure.empty()) return failure;
  }
  return {};
}

Failure check_trigger(Accelerator& accelerator) {
  if (accelerator.check_trigger()) return "is set before anyone set it";
  accelerator.on_main_process([&] { accelerator.set_trigger(); });
  if (!accelerator.check_trigger()) return "was set on the main process, and not seen";
  return accelerator.check_trigger() ? "is still set after it was seen" : "";
}

}  // namespace acc::selftest
