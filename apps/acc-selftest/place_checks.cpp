// SPDX-License-Identifier: Apache-2.0
#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <unistd.h>

#include <chrono>

#include "acc/base/environment.hpp"
#include "acc/base/worker_env.hpp"
#include "checks.hpp"

namespace acc::selftest {
namespace {

std::int64_t nanoseconds_now() {
  return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

}  // namespace

Complaint check_state(Accelerator& accelerator) {
  const WorkerEnv worker = read_worker_env(Environment::of_process());
  if (accelerator.num_processes() != worker.world_size) return "num_processes is not WORLD_SIZE";
  if (accelerator.process_index() != worker.rank) return "process_index is not RANK";
  if (accelerator.local_process_index() != worker.local_rank) return "local_process_index is not LOCAL_RANK";

  const at::Tensor ranks = accelerator.gather(at::full({}, accelerator.process_index(), at::kLong));
  if (!ranks.equal(at::arange(accelerator.num_processes(), at::kLong))) return "the ranks are not 0, 1, ...";
  const at::Tensor sizes = accelerator.gather(at::full({}, accelerator.num_processes(), at::kLong));
  if (!sizes.eq(accelerator.num_processes()).all().item<bool>())
    return "the processes disagree on their number";
  const at::Tensor pids = accelerator.gather(at::full({}, ::getpid(), at::kLong));
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

Complaint check_process_order(Accelerator& accelerator) {
  std::int64_t at = 0;
  accelerator.main_process_first([&] { at = nanoseconds_now(); });
  const at::Tensor times = accelerator.gather(at::full({}, at, at::kLong));
  // One machine has one clock: where the main process runs, rank and local rank are the same.
  const bool same_machine = accelerator.process_index() == accelerator.local_process_index();
  if (same_machine && times[0].item<std::int64_t>() > at) return "began before the main process had finished";
  return {};
}

}  // namespace acc::selftest
