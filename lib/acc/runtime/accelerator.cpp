// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/accelerator.hpp"

#include <ATen/ops/zeros.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdio>

#include "acc/base/environment.hpp"
#include "acc/base/error.hpp"
#include "acc/runtime/checkpoint/model_file.hpp"
#include "acc/runtime/torch_version.hpp"

namespace acc {
namespace {

constexpr std::string_view kPrecisionVariable = "ACCELERATE_MIXED_PRECISION";

// One group per process: a second Accelerator of a program uses that of the first.
std::shared_ptr<ProcessGroup> join(const WorkerEnv& worker, std::chrono::milliseconds timeout) {
  static std::weak_ptr<ProcessGroup> joined;
  if (worker.world_size == 1) return nullptr;
  auto group = joined.lock();
  if (!group) {
    group = std::make_shared<ProcessGroup>(worker, timeout);
    joined = group;
  }
  return group;
}

// Type, number of dimensions and sizes, in a tensor of the same size on every rank.
at::Tensor form_of(const at::Tensor& tensor) {
  constexpr std::int64_t kMostDimensions = 16;
  if (tensor.dim() > kMostDimensions) throw Error({.what = "has more than 16 dimensions", .where = "gather"});
  at::Tensor form = at::zeros({2 + kMostDimensions}, at::kLong);
  auto* numbers = form.mutable_data_ptr<std::int64_t>();
  numbers[0] = static_cast<std::int64_t>(tensor.scalar_type());
  numbers[1] = tensor.dim();
  std::copy(tensor.sizes().begin(), tensor.sizes().end(), numbers + 2);
  return form;
}

std::string form_text(const at::Tensor& form) {
  const auto* numbers = form.const_data_ptr<std::int64_t>();
  return fmt::format("{} [{}]", c10::toString(static_cast<at::ScalarType>(numbers[0])),
                     fmt::join(numbers + 2, numbers + 2 + numbers[1], ", "));
}

// Gloo would hang or mix the bytes up.
void require_same_form(const at::Tensor& tensor, ProcessGroup& group) {
  const at::Tensor forms = group.all_gather(form_of(tensor));
  for (int rank = 1; rank < group.size(); ++rank) {
    if (forms[rank].equal(forms[0])) continue;
    throw Error(
        {.what = fmt::format("every process must give the same shape and type, but rank 0 gives {} and "
                             "rank {} gives {}",
                             form_text(forms[0]), rank, form_text(forms[rank])),
         .where = "gather"});
  }
}

}  // namespace

struct Accelerator::Impl {
  AcceleratorOptions options = {};
  WorkerEnv worker = {};
  MixedPrecision precision = MixedPrecision::no;
  std::shared_ptr<ProcessGroup> group = {};
  std::shared_ptr<ActiveLoaders> active = std::make_shared<ActiveLoaders>();
};

Accelerator::Accelerator(AcceleratorOptions options) : impl_(std::make_unique<Impl>()) {
  require_compiled_torch();
  const Environment environment = Environment::of_process();
  impl_->options = options;
  impl_->worker = read_worker_env(environment);
  const auto from_environment = [&] {
    return parse_mixed_precision(environment.get(kPrecisionVariable, "no"), kPrecisionVariable);
  };
  impl_->precision = options.mixed_precision ? *options.mixed_precision : from_environment();
  impl_->group = join(impl_->worker, options.timeout);
}

Accelerator::~Accelerator() = default;

int Accelerator::num_processes() const {
  return impl_->worker.world_size;
}
int Accelerator::process_index() const {
  return impl_->worker.rank;
}
int Accelerator::local_process_index() const {
  return impl_->worker.local_rank;
}
MixedPrecision Accelerator::mixed_precision() const {
  return impl_->precision;
}
std::shared_ptr<ActiveLoaders> Accelerator::active_loaders() const {
  return impl_->active;
}
std::shared_ptr<ProcessGroup> Accelerator::process_group() const {
  return impl_->group;
}

std::shared_ptr<Ddp> Accelerator::make_ddp(std::shared_ptr<torch::nn::Module> module) {
  if (!impl_->group) return nullptr;
  return std::make_shared<Ddp>(std::move(module), impl_->group, impl_->options.ddp);
}

void Accelerator::share(LoaderPlan& plan) {
  // Processes that were seeded differently still must agree on the order of the samples.
  at::Tensor seed = at::zeros({1}, at::kLong);
  *seed.mutable_data_ptr<std::int64_t>() = static_cast<std::int64_t>(plan.seed());
  seed = broadcast(seed);
  plan.set_seed(static_cast<std::uint64_t>(*seed.const_data_ptr<std::int64_t>()));
  plan.set_shard({.index = static_cast<std::size_t>(process_index()),
                  .count = static_cast<std::size_t>(num_processes()),
                  .even_batches = impl_->options.even_batches,
                  .split_batches = impl_->options.split_batches});
}

void Accelerator::backward(const at::Tensor& loss) {
  if (!impl_->group) return loss.backward();
  impl_->group->explained("backward", [&] { loss.backward(); });
}

at::Tensor Accelerator::gather(const at::Tensor& tensor) {
  const at::Tensor rows = tensor.dim() == 0 ? tensor.detach().reshape({1}) : tensor.detach();
  if (!impl_->group) return rows;
  require_same_form(rows, *impl_->group);
  return impl_->group->all_gather(rows).flatten(0, 1);
}

at::Tensor Accelerator::gather_for_metrics(const at::Tensor& tensor) {
  const at::Tensor all = gather(tensor);
  const ActiveLoaders::State* loader = impl_->active->innermost();
  if (loader == nullptr || !loader->at_end || loader->remainder == 0) return all;
  return all.slice(0, 0, static_cast<std::int64_t>(loader->remainder));
}

at::Tensor Accelerator::reduce(const at::Tensor& tensor, ReduceOp op) {
  at::Tensor result = tensor.detach();
  if (impl_->group) impl_->group->all_reduce(result, op);
  return result;
}

at::Tensor Accelerator::broadcast(const at::Tensor& tensor, int from) {
  at::Tensor result = tensor.detach().clone();
  if (impl_->group) impl_->group->broadcast(result, from);
  return result;
}

void Accelerator::wait_for_everyone() {
  if (impl_->group) impl_->group->barrier();
}

void Accelerator::print(std::string_view line) const {
  if (!is_local_main_process()) return;
  std::fwrite(line.data(), 1, line.size(), stdout);
  std::fputc('\n', stdout);
  std::fflush(stdout);
}

void Accelerator::save_module(const torch::nn::Module& module, const std::filesystem::path& file) const {
  if (is_main_process()) save_model_file(module, file);
}

void Accelerator::load_module(torch::nn::Module& module, const std::filesystem::path& file) const {
  load_model_file(module, file);
}

}  // namespace acc
