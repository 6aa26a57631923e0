// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/util/intrusive_ptr.h>

#include <memory>

#include "acc/runtime/parallel/ddp_options.hpp"

namespace c10d {
class ProcessGroup;
class Reducer;
}  // namespace c10d
namespace torch::nn {
class Module;
}

namespace acc {

/// LibTorch's Reducer for those parameters of `module` that need a gradient, set up as Python's
/// DistributedDataParallel sets it up.
std::shared_ptr<c10d::Reducer> make_reducer(const torch::nn::Module& module,
                                            const c10::intrusive_ptr<c10d::ProcessGroup>& group,
                                            const DdpOptions& options);

}  // namespace acc
