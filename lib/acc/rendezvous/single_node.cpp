// SPDX-License-Identifier: Apache-2.0
#include "acc/rendezvous/single_node.hpp"

#include "acc/base/event_loop.hpp"
#include "acc/plan/worker_environment.hpp"

namespace acc::launcher {

SingleNode::SingleNode(net::io_context& loop, const LaunchPlan& plan)
    : round_(expected_round(plan)), stall_(plan.restarts_without_progress) {
  if (!plan.sets_ranks) return;
  if (!plan.use_agent_store) {
    workers_port_.emplace(plan.master_port);
    round_.master_port = workers_port_->port();
    return;
  }
  store_.emplace(loop, StoreServerOptions{.addresses = plan.store_addresses, .port = plan.master_port});
  round_.master_port = store_->port();
  store_->serve({.others = StoreClients::Others::refused});
}

void SingleNode::join() {
  if (restarts_ > 0 && store_) store_->reset();
  emit(RoundReady{round_, restarts_});
}

void SingleNode::fail(const RoundOver& failure) {
  const RoundOver verdict = decide(failure, stall_);
  if (verdict.restart) ++restarts_;
  emit(verdict);
}

void SingleNode::leave(const std::string& /*reason*/, int /*code*/) {
  emit(Left{});
}

}  // namespace acc::launcher
