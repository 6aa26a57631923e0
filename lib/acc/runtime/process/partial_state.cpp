// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/process/partial_state.hpp"

#include <atomic>
#include <cstdio>

#include "acc/base/environment.hpp"
#include "acc/base/error.hpp"
#include "acc/runtime/comm/device_choice.hpp"
#include "acc/runtime/comm/record.hpp"
#include "acc/runtime/process/joined_job.hpp"
#include "acc/runtime/process/on_load.hpp"

namespace acc {
namespace {

std::atomic<int> live_states = 0;
std::weak_ptr<ProcessGroup> joined;

// There is one process group in a process: a second PartialState uses the group of the first.
std::shared_ptr<ProcessGroup> join(const WorkerEnv& worker, std::chrono::milliseconds timeout,
                                   at::Device device, CudaBackend cuda_backend,
                                   std::optional<CpuBackend> cpu_backend) {
  if (worker.world_size == 1) return nullptr;
  auto group = joined.lock();
  if (!group) {
    group = std::make_shared<ProcessGroup>(worker, timeout, device, cuda_backend, cpu_backend);
    joined = group;
  }
  return group;
}

WorkerEnv worker_env_of_process() {
  record_uncaught_exceptions();
  detail::require_compiled_torch();
  return read_worker_env(Environment::of_process());
}

}  // namespace

namespace detail {

bool has_joined_job() {
  return live_states > 0 || !joined.expired();
}

JobPosition joined_job() {
  const auto group = joined.lock();
  return group ? JobPosition{.rank = group->rank(), .size = group->size()} : JobPosition();
}

LiveState::LiveState() {
  ++live_states;
}
LiveState::~LiveState() {
  --live_states;
}

}  // namespace detail

PartialState::PartialState(std::chrono::milliseconds timeout, bool cpu, CudaBackend cuda_backend,
                           std::optional<CpuBackend> cpu_backend)
    : worker_(worker_env_of_process()),
      device_(detail::claim_device(worker_, cpu, cuda_backend == CudaBackend::gloo)),
      group_(join(worker_, timeout, device_, cuda_backend, cpu_backend)) {}

DistributedType PartialState::distributed_type() const {
  if (!distributed()) return DistributedType::no;
  return device().is_cpu() ? DistributedType::multi_cpu : DistributedType::multi_gpu;
}

ProcessGroup* PartialState::group_of_all() const {
  if (!left_) return group_.get();
  throw Error({.what = "this process has left the job: collective operations are no longer possible",
               .where = "after end_training",
               .hint = "call end_training last"});
}

void PartialState::wait_for_everyone() const {
  if (ProcessGroup* group = group_of_all()) group->barrier();
}

void PartialState::print(std::string_view line) const {
  if (!is_local_main_process()) return;
  std::fwrite(line.data(), 1, line.size(), stdout);
  std::fputc('\n', stdout);
  std::fflush(stdout);
}

}  // namespace acc
