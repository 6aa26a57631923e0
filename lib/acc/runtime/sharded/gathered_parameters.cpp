// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/sharded/gathered_parameters.hpp"

#include <utility>

#include "acc/runtime/sharded/sharded_module.hpp"

namespace acc {

GatheredParameters::GatheredParameters(std::shared_ptr<detail::ShardedModule> module)
    : module_(std::move(module)) {
  if (module_) module_->gather_all();
}

GatheredParameters::~GatheredParameters() {
  if (module_) module_->release_all();
}

}  // namespace acc
