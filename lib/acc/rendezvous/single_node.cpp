// SPDX-License-Identifier: Apache-2.0
#include "acc/rendezvous/single_node.hpp"

#include <utility>

#include "acc/base/error.hpp"
#include "acc/plan/worker_environment.hpp"

namespace acc {

SingleNode::SingleNode(boost::asio::io_context& loop, const LaunchPlan& plan) : round_(expected_round(plan)) {
  if (plan.rendezvous.most_nodes > 1) throw Error({.what = "this version starts jobs of one machine"});
  if (!plan.sets_ranks) return;
  if (!plan.use_agent_store) {
    workers_port_.emplace(plan.master_port);
    round_.master_port = workers_port_->port();
    return;
  }
  store_.emplace(loop, StoreServerOptions{.port = plan.master_port});
  round_.master_port = store_->port();
}

Round SingleNode::next_round() {
  if (std::exchange(used_, true) && store_) store_->reset();
  return round_;
}

}  // namespace acc
