// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/parallel/comm_hook.hpp"

#include <memory>
#include <torch/csrc/distributed/c10d/reducer.hpp>

namespace acc {
namespace {

using Group = c10::intrusive_ptr<c10d::ProcessGroup>;
using c10::ivalue::Future;

// LibTorch has this for fp16 alone.
class Bf16Compress : public c10d::CppCommHookInterface<Group> {
 public:
  using CppCommHookInterface::CppCommHookInterface;

  c10::intrusive_ptr<Future> runHook(c10d::GradBucket& bucket) override {
    at::Tensor bucket_gradients = bucket.getBuffer();
    std::vector<at::Tensor> compressed{bucket_gradients.to(at::kBFloat16).div_(state_->getSize())};
    const auto write_back = [bucket_gradients](Future& sum) {
      bucket_gradients.copy_(c10d::detail::parseCppCommHookResult(sum.value()));
      return c10::IValue(bucket_gradients);
    };
    return state_->allreduce(compressed)->getFuture()->then(write_back, c10::TensorType::get());
  }
};

}  // namespace

void register_comm_hook(c10d::Reducer& reducer, const Group& group, CommHook hook) {
  if (hook == CommHook::fp16) reducer.register_builtin_comm_hook(c10d::BuiltinCommHookType::FP16_COMPRESS);
  if (hook == CommHook::bf16) reducer.register_comm_hook(std::make_unique<Bf16Compress>(group));
}

}  // namespace acc
