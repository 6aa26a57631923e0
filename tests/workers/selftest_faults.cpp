// SPDX-License-Identifier: Apache-2.0
// A library for LD_PRELOAD that breaks one thing in libacc, which the variable ACC_FAULT names, as far as
// acc-selftest calls it: selftest/faults_test.py starts acc-selftest with each.
#include <dlfcn.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <string_view>
#include <thread>

#include "acc/base/worker_env.hpp"
#include "acc/runtime/accelerator/accelerator.hpp"
#include "acc/runtime/comm/operations.hpp"
#include "acc/runtime/data/loader_plan.hpp"

namespace {

bool breaks(std::string_view what) {
  const char* fault = std::getenv("ACC_FAULT");
  return fault != nullptr && what == fault;
}

// A failure that takes a while to tell why: the others could be faster to tell that they lost this rank.
struct SlowFailure : std::exception {
  const char* what() const noexcept override {
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    return "this rank has no data";
  }
};

// The function of libacc that `function` hides from its callers.
template <class Function>
Function* next(Function* function) {
  Dl_info about = {};
  ::dladdr(reinterpret_cast<void*>(function), &about);
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, about.dli_sname));
}

}  // namespace

namespace acc {

// What acc-selftest compares with. It has read it once before, to know itself, and libacc reads it, too.
WorkerEnv read_worker_env(const Environment& environment) {
  WorkerEnv worker = next(&read_worker_env)(environment);
  Dl_info caller = {};
  ::dladdr(__builtin_return_address(0), &caller);
  static std::atomic<int> calls = 0;
  const bool compares = std::string_view(caller.dli_fname).ends_with("acc-selftest") && ++calls > 1;
  if (breaks("ranks") && compares) worker.rank = worker.local_rank = 1 - worker.rank;
  return worker;
}

void set_seed(std::uint64_t seed, const SeedOptions& options) {
  if (!breaks("set_seed")) next (&set_seed)(seed, options);
}

namespace detail {

// The test itself gathers and reduces texts and numbers, which have fewer dimensions.
at::Tensor gather_tensor(const at::Tensor& tensor, ProcessGroup* group, const std::string& structure) {
  if (breaks("rank") && tensor.dim() == 2) throw SlowFailure();
  at::Tensor all = next(&gather_tensor)(tensor, group, structure);
  if (breaks("gather") && tensor.dim() == 2) return all.flip(0);
  if (breaks("gather of numbers") && tensor.dim() == 0) return all.flip(0);
  return all;
}

at::Tensor reduce_tensor(const at::Tensor& tensor, ReduceOp op, double scale, ProcessGroup* group,
                         const std::string& structure) {
  at::Tensor reduced = next(&reduce_tensor)(tensor, op, scale, group, structure);
  return breaks("reduce") && tensor.dim() == 2 ? tensor : reduced;
}

at::Tensor broadcast_tensor(const at::Tensor& tensor, int from, ProcessGroup* group,
                            const std::string& structure) {
  at::Tensor sent =
      next(&broadcast_tensor)(tensor, breaks("source of broadcast") ? 0 : from, group, structure);
  return breaks("broadcast") && tensor.dim() == 2 ? tensor : sent;
}

Part part_of_process(std::size_t length, std::size_t index, std::size_t count, bool apply_padding) {
  if (breaks("part of a list")) return {.begin = 0, .end = length};
  return next(&part_of_process)(length, index, count, apply_padding);
}

at::Tensor take_part(const at::Tensor& tensor, const Part& part) {
  using Function = at::Tensor(const at::Tensor&, const Part&);
  return breaks("part of a tensor") ? tensor : next(static_cast<Function*>(&take_part))(tensor, part);
}

}  // namespace detail
}  // namespace acc

// Members. Each has the name by which its callers are linked.
extern "C" {

void accelerator(void* self,
                 acc::AcceleratorOptions* options) asm("_ZN3acc11AcceleratorC1ENS_18AcceleratorOptionsE");
void accelerator(void* self, acc::AcceleratorOptions* options) {
  if (breaks("split_batches")) options->split_batches = false;
  if (breaks("dispatch_batches")) options->dispatch_batches = false;
  next (&accelerator)(self, options);
}

void loader_plan(void* self, std::optional<std::size_t> size, const acc::DataLoaderOptions& options) asm(
    "_ZN3acc10LoaderPlanC1ESt8optionalImERKNS_17DataLoaderOptionsE");
void loader_plan(void* self, std::optional<std::size_t> size, const acc::DataLoaderOptions& options) {
  acc::DataLoaderOptions other = options;
  if (breaks("shuffle")) other.shuffle = false;
  if (breaks("seed") && other.seed) other.seed = 7;
  if (breaks("batch_sampler")) other.batch_sampler.reset();
  next (&loader_plan)(self, size, other);
}

void set_epoch(void* self, std::uint64_t epoch) asm("_ZN3acc10LoaderPlan9set_epochEm");
void set_epoch(void* self, std::uint64_t epoch) {
  if (!breaks("set_epoch")) next (&set_epoch)(self, epoch);
}

bool check_trigger(void* self) asm("_ZN3acc11Accelerator13check_triggerEv");
bool check_trigger(void* self) {
  return !breaks("trigger") && next(&check_trigger)(self);
}

void wait_for_everyone(const void* self) asm("_ZNK3acc12PartialState17wait_for_everyoneEv");
void wait_for_everyone(const void* self) {
  if (!breaks("wait_for_everyone")) next (&wait_for_everyone)(self);
}

void backward(void* self, const at::Tensor& loss, const acc::BackwardOptions& options) asm(
    "_ZN3acc11Accelerator8backwardERKN2at6TensorERKNS_15BackwardOptionsE");
void backward(void* self, const at::Tensor& loss, const acc::BackwardOptions& options) {
  next (&backward)(self, breaks("scale of accumulation") ? loss.mul(2) : loss, options);
}

void autocast(
    void* self, acc::MixedPrecision precision, c10::DeviceType device,
    acc::AutocastOptions
        options) asm("_ZN3acc8AutocastC1ENS_14MixedPrecisionEN3c1010DeviceTypeENS_15AutocastOptionsE");
void autocast(void* self, acc::MixedPrecision precision, c10::DeviceType device,
              acc::AutocastOptions options) {
  next (&autocast)(self, breaks("autocast") ? acc::MixedPrecision::no : precision, device, options);
}
}
