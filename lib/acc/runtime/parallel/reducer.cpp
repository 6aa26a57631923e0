// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/parallel/reducer.hpp"

#include <algorithm>
#include <limits>
#include <memory>
#include <torch/csrc/distributed/c10d/logger.hpp>
#include <torch/csrc/distributed/c10d/reducer.hpp>
#include <type_traits>

namespace acc::detail {
namespace {

using Group = c10::intrusive_ptr<c10d::ProcessGroup>;
using c10::ivalue::Future;

// Later versions of LibTorch added parameters to the constructor: two flags, and in 2.11 a list of bucket
// caps.
template <class Reducer, class... Arguments>
std::shared_ptr<Reducer> construct(Arguments... arguments) {
  using Caps = std::vector<std::int64_t>;
  if constexpr (std::is_constructible_v<Reducer, Arguments..., bool, bool, Caps>) {
    return std::make_shared<Reducer>(std::move(arguments)..., false, false, Caps{});
  } else if constexpr (std::is_constructible_v<Reducer, Arguments..., bool, bool>) {
    return std::make_shared<Reducer>(std::move(arguments)..., false, false);
  } else {
    return std::make_shared<Reducer>(std::move(arguments)...);
  }
}

struct BucketLimits {
  std::int64_t first = c10d::kDefaultFirstBucketBytes;
  std::int64_t others = c10d::kDefaultBucketBytesCap;
};

BucketLimits limits_of(const DdpOptions& options) {
  if (!options.bucket_cap_mb) return {};
  const auto cap = static_cast<std::int64_t>(*options.bucket_cap_mb * 1024 * 1024);
  return {.first = cap, .others = cap};
}

// The buckets of the first step. Usually a single one, since the Reducer rebuilds the buckets after the first
// step, in the order in which gradients arrived. With find_unused_parameters it never rebuilds them.
std::vector<std::vector<std::size_t>> first_buckets(const std::vector<at::Tensor>& parameters,
                                                    const std::vector<bool>& sparse, BucketLimits limits,
                                                    const DdpOptions& options) {
  std::vector<std::size_t> sizes{std::numeric_limits<std::int64_t>::max()};
  if (options.find_unused_parameters && !options.static_graph) {
    sizes = {static_cast<std::size_t>(limits.first), static_cast<std::size_t>(limits.others)};
  }
  auto buckets = std::get<0>(c10d::compute_bucket_assignment_by_size(parameters, sizes, sparse,
                                                                     /*tensor_indices=*/{}, std::nullopt));
  std::ranges::reverse(buckets);
  return buckets;
}

// LibTorch has such a hook for fp16 only.
class Bf16Compress : public c10d::CppCommHookInterface<Group> {
 public:
  using CppCommHookInterface::CppCommHookInterface;

  c10::intrusive_ptr<Future> runHook(c10d::GradBucket& bucket) override {
    const at::Tensor& bucket_gradients = bucket.getBuffer();
    std::vector<at::Tensor> compressed{bucket_gradients.to(at::kBFloat16).div_(state_->getSize())};
    const auto write_back = [bucket_gradients](Future& sum) {
      bucket_gradients.copy_(c10d::detail::parseCppCommHookResult(sum.value()));
      return c10::IValue(bucket_gradients);
    };
    return state_->allreduce(compressed)->getFuture()->then(write_back, c10::TensorType::get());
  }
};

void register_comm_hook(c10d::Reducer& reducer, const Group& group, CommHook hook) {
  if (hook == CommHook::fp16) reducer.register_builtin_comm_hook(c10d::BuiltinCommHookType::FP16_COMPRESS);
  if (hook == CommHook::bf16) reducer.register_comm_hook(std::make_unique<Bf16Compress>(group));
}

}  // namespace

void GradientReducer::settle_layout() {
  if (!require_finalize_) rebuild_buckets();
}

BucketLayout GradientReducer::layout() const {
  if (!has_rebuilt_bucket_) return {};
  BucketLayout layout;
  for (const Bucket& bucket : buckets_) layout.push_back(bucket.variable_indices);
  return layout;
}

void GradientReducer::set_layout(const BucketLayout& layout) {
  initialize_buckets(layout);
  has_rebuilt_bucket_ = true;
}

bool is_layout_of(const BucketLayout& layout, const std::vector<at::Tensor>& parameters,
                  const std::vector<bool>& sparse) {
  std::vector<std::size_t> indices;
  for (const std::vector<std::size_t>& bucket : layout) {
    for (const std::size_t index : bucket) {
      if (index >= parameters.size() ||
          parameters[index].scalar_type() != parameters[bucket[0]].scalar_type() ||
          (sparse[index] && bucket.size() != 1))
        return false;
      indices.push_back(index);
    }
    if (bucket.empty()) return false;
  }
  std::ranges::sort(indices);
  if (indices.size() != parameters.size()) return false;
  for (std::size_t i = 0; i < indices.size(); ++i) {
    if (indices[i] != i) return false;
  }
  return true;
}

std::shared_ptr<GradientReducer> make_reducer(const std::vector<at::Tensor>& parameters,
                                              const std::vector<bool>& sparse, const Group& group,
                                              const DdpOptions& options) {
  const BucketLimits limits = limits_of(options);
  auto reducer = construct<GradientReducer>(parameters, first_buckets(parameters, sparse, limits, options),
                                            group, sparse, limits.others, options.find_unused_parameters,
                                            options.gradient_as_bucket_view,
                                            std::unordered_map<std::size_t, std::string>{}, limits.first);
  if (options.static_graph) reducer->set_static_graph();
  register_comm_hook(*reducer, group, options.comm_hook);
  // The Reducer requires a logger, to which it keeps a weak reference, and the logger owns the Reducer: both
  // are kept alive together.
  auto logger = std::make_shared<c10d::Logger>(reducer);
  reducer->set_logger(logger);
  return {logger, reducer.get()};
}

}  // namespace acc::detail
