// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

namespace acc {

namespace detail {
class ShardedModule;
}

/// The result of Accelerator::gathered_parameters: while it exists, this process has all parameters of a
/// sharded model, and the program may read and change them. Changes are kept, each process those of its
/// shard: make the same on all.
class GatheredParameters {
 public:
  /// Together. Does nothing when `module` is null.
  explicit GatheredParameters(std::shared_ptr<detail::ShardedModule> module);
  ~GatheredParameters();
  GatheredParameters(const GatheredParameters&) = delete;
  GatheredParameters& operator=(const GatheredParameters&) = delete;

 private:
  std::shared_ptr<detail::ShardedModule> module_;
};

}  // namespace acc
