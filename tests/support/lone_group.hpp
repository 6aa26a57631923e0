// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <memory>

#include "acc/base/worker_env.hpp"
#include "acc/runtime/comm/process_group.hpp"

namespace acc::test {

/// A process group of this process alone; its store has a free port.
inline std::shared_ptr<ProcessGroup> lone_group() {
  return std::make_shared<ProcessGroup>(WorkerEnv{.master_port = 0}, std::chrono::minutes(1));
}

}  // namespace acc::test
