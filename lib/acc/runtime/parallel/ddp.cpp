// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/parallel/ddp.hpp"

#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/nn/module.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <torch/csrc/distributed/c10d/reducer.hpp>
#include <type_traits>

#include "acc/base/error.hpp"
#include "acc/base/text.hpp"
#include "acc/runtime/parallel/parameter_agreement.hpp"

namespace acc {
namespace {

using Group = c10::intrusive_ptr<c10d::ProcessGroup>;

// The constructor's last parameters came one after the other: two flags, then the list of caps in 2.11.
template <class Reducer, class... Arguments>
std::unique_ptr<Reducer> make_reducer(Arguments... arguments) {
  using Caps = std::vector<std::int64_t>;
  if constexpr (std::is_constructible_v<Reducer, Arguments..., bool, bool, Caps>) {
    return std::make_unique<Reducer>(std::move(arguments)..., false, false, Caps{});
  } else if constexpr (std::is_constructible_v<Reducer, Arguments..., bool, bool>) {
    return std::make_unique<Reducer>(std::move(arguments)..., false, false);
  } else {
    return std::make_unique<Reducer>(std::move(arguments)...);
  }
}

std::vector<at::Tensor> trained_parameters(const torch::nn::Module& module) {
  std::vector<at::Tensor> parameters = module.parameters();
  std::erase_if(parameters, [](const at::Tensor& parameter) { return !parameter.requires_grad(); });
  return parameters;
}

std::unique_ptr<c10d::Reducer> make_reducer_for(const std::vector<at::Tensor>& parameters, const Group& group,
                                                const DdpOptions& options) {
  const auto cap = options.bucket_cap_mb ? static_cast<std::int64_t>(*options.bucket_cap_mb * 1024 * 1024)
                                         : static_cast<std::int64_t>(c10d::kDefaultBucketBytesCap);
  const std::int64_t first = options.bucket_cap_mb ? cap : c10d::kDefaultFirstBucketBytes;
  const std::vector<bool> sparse(parameters.size(), false);
  // One bucket of everything: after the first step the Reducer makes new ones in the order of the gradients.
  const std::vector<std::size_t> no_limit{std::numeric_limits<std::int64_t>::max()};
  auto [buckets, limits] =
      c10d::compute_bucket_assignment_by_size(parameters, no_limit, sparse, {}, std::nullopt);
  std::ranges::reverse(buckets);
  return make_reducer<c10d::Reducer>(parameters, buckets, group, sparse, cap,
                                     /*find_unused_parameters=*/false, options.gradient_as_bucket_view,
                                     std::unordered_map<std::size_t, std::string>{}, first);
}

// The Reducer tells the parameters that got no gradient by their indices: "... for rank 1: 2 3\n ...".
std::string names_in(std::string_view text, const torch::nn::Module& module) {
  std::vector<std::string> trained;
  for (const auto& item : module.named_parameters()) {
    if (item.value().requires_grad()) trained.push_back(item.key());
  }
  std::vector<std::string> names;
  const std::size_t at = text.find("did not receive grad for rank");
  const std::string_view list = text.substr(std::min(text.size(), text.find(':', std::min(at, text.size()))));
  for (const std::string& word : split(list.substr(0, list.find('\n')), ' ')) {
    const auto index = parse_integer(word);
    if (index && *index >= 0 && static_cast<std::size_t>(*index) < trained.size())
      names.push_back(trained[*index]);
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

struct Ddp::Impl {
  std::shared_ptr<torch::nn::Module> module = {};
  std::shared_ptr<ProcessGroup> group = {};
  Group native = {};
  DdpOptions options = {};
  std::unique_ptr<c10d::Reducer> reducer = {};
  bool synchronizes = true;
  // Buffers changed since they were last broadcast only where the last forward was one that trains.
  bool buffers_due = true;

  void broadcast_state() {
    std::vector<at::Tensor> state = module->parameters();
    if (options.broadcast_buffers) std::ranges::copy(module->buffers(), std::back_inserter(state));
    std::ranges::transform(state, state.begin(), [](const at::Tensor& tensor) { return tensor.detach(); });
    group->broadcast(state, 0);
  }
};

Ddp::Ddp(std::shared_ptr<torch::nn::Module> module, std::shared_ptr<ProcessGroup> group, DdpOptions options)
    : impl_(std::make_unique<Impl>()) {
  impl_->module = std::move(module);
  impl_->group = std::move(group);
  impl_->native = Group::reclaim_copy(&impl_->group->native());
  impl_->options = options;
  require_same_parameters(*impl_->module, *impl_->group);
  const std::vector<at::Tensor> parameters = trained_parameters(*impl_->module);
  if (parameters.empty()) {
    throw Error({.what = "no parameter needs a gradient",
                 .where = impl_->module->name(),
                 .hint = "use a model that is not trained without preparing it"});
  }
  impl_->broadcast_state();
  impl_->reducer = make_reducer_for(parameters, impl_->native, options);
}

Ddp::~Ddp() = default;

void Ddp::before_forward() {
  const bool trains = at::GradMode::is_enabled();
  try {
    if (trains && impl_->synchronizes) impl_->reducer->prepare_for_forward();
    if (trains) impl_->reducer->rebuild_buckets();
  } catch (const c10::Error& error) {
    const std::string_view text = error.what_without_backtrace();
    if (text.find("Expected to have finished reduction") == std::string_view::npos) throw;
    throw Error(
        {.what =
             fmt::format("took no part in the last loss, so the processes cannot average their gradients: {}",
                         names_in(text, *impl_->module)),
         .where = fmt::format("rank {}, {}", impl_->group->rank(), impl_->module->name()),
         .hint = "use every parameter in each forward, or freeze it with requires_grad_(false) before "
                 "the model is prepared"});
  }
  if (impl_->buffers_due && impl_->options.broadcast_buffers) {
    impl_->group->broadcast(impl_->module->buffers(), 0);
  }
}

void Ddp::after_forward() {
  impl_->buffers_due = at::GradMode::is_enabled() && impl_->synchronizes;
  if (impl_->buffers_due) impl_->reducer->prepare_for_backward({});
}

bool Ddp::synchronizes() const {
  return impl_->synchronizes;
}
void Ddp::set_synchronizes(bool on) {
  impl_->synchronizes = on;
}

}  // namespace acc
