// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/util/intrusive_ptr.h>

#include <memory>
#include <torch/csrc/distributed/c10d/reducer.hpp>
#include <vector>

#include "acc/runtime/parallel/ddp.hpp"

namespace acc::detail {

/// LibTorch's Reducer. After its first step it rebuilds its buckets in the order in which gradients arrived.
/// With three and more processes the order of a sum's terms, and so its last bit, depends on the buckets.
class GradientReducer : public c10d::Reducer {
 public:
  using Reducer::Reducer;

  /// Together: after the first step does at once what the next forward would do, unless a backward is
  /// still to come.
  void settle_layout();

  /// The layout after the first step; empty before it, and where there is none but the first.
  BucketLayout layout() const;

  /// Goes on with a layout of an earlier run, which must have each parameter once.
  void set_layout(const BucketLayout& layout);
};

/// Whether a reducer of `parameters` can have the layout: each parameter once, and one type in a bucket.
bool is_layout_of(const BucketLayout& layout, const std::vector<at::Tensor>& parameters);

/// A reducer for `parameters`, which need gradients and are distinct, set up as Python's
/// DistributedDataParallel sets it up.
std::shared_ptr<GradientReducer> make_reducer(const std::vector<at::Tensor>& parameters,
                                              const c10::intrusive_ptr<c10d::ProcessGroup>& group,
                                              const DdpOptions& options);

}  // namespace acc::detail
