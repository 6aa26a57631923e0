// SPDX-License-Identifier: Apache-2.0
#include "acc/launch/single_node.hpp"

#include <utility>

namespace acc {

SingleNode::SingleNode(boost::asio::io_context& loop, const LaunchPlan& plan)
    : round_{.machine_rank = plan.machine_rank,
             .num_machines = plan.num_machines,
             .master_addr = plan.master_addr,
             .master_port = plan.master_port} {
  if (!plan.sets_ranks) return;
  store_.emplace(loop, StoreServerOptions{.port = plan.master_port});
  round_.master_port = store_->port();
}

Round SingleNode::next_round() {
  if (std::exchange(used_, true) && store_) store_->reset();
  return round_;
}

}  // namespace acc
