// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/util/intrusive_ptr.h>

#include <memory>
#include <torch/csrc/distributed/c10d/reducer.hpp>
#include <vector>

#include "acc/runtime/parallel/ddp.hpp"

namespace acc::detail {

/// LibTorch's Reducer. After the first step it rebuilds its buckets in the order in which gradients arrived.
/// With more than two processes the buckets determine the order in which Gloo adds gradients, and so the last
/// bit of the sums.
class GradientReducer : public c10d::Reducer {
 public:
  using Reducer::Reducer;

  /// Whether it averages the gradients that arrive now: after a forward, until all have arrived.
  bool averages() const { return expect_autograd_hooks_; }

  /// Whether it has taken gradients since the last forward, but not yet those of all parameters.
  bool is_incomplete() const { return require_finalize_; }

  /// The parameters that it does not wait for, since the last output does not depend on them.
  const std::vector<std::size_t>& unused() const { return unused_parameters_; }

  /// Together: rebuilds the buckets at once if the next forward would do so, unless a backward is pending.
  void settle_layout();

  /// The layout after the buckets were rebuilt; empty if they have not been.
  BucketLayout layout() const;

  /// Continues with the layout of an earlier run, which must contain each parameter once.
  void set_layout(const BucketLayout& layout);
};

/// Whether a reducer of `parameters` can have the layout: it must contain each parameter once, buckets of one
/// type, and those with sparse gradients alone. `sparse` says for each parameter whether it has such.
bool is_layout_of(const BucketLayout& layout, const std::vector<at::Tensor>& parameters,
                  const std::vector<bool>& sparse);

/// A reducer for `parameters`, which must be distinct and require gradients, set up as in Python's
/// DistributedDataParallel. `sparse` says for each whether its gradients are sparse.
std::shared_ptr<GradientReducer> make_reducer(const std::vector<at::Tensor>& parameters,
                                              const std::vector<bool>& sparse,
                                              const c10::intrusive_ptr<c10d::ProcessGroup>& group,
                                              const DdpOptions& options);

}  // namespace acc::detail
