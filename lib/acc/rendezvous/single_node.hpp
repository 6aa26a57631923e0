// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/io_context.hpp>
#include <optional>

#include "acc/plan/launch_plan.hpp"
#include "acc/rendezvous/rendezvous.hpp"
#include "acc/store/server.hpp"

namespace acc {

/// A job of this machine alone: nobody to wait for, and the store on the plan's port or a free one.
class SingleNode : public Rendezvous {
 public:
  /// Binds the store's port at once, and keeps it. Throws Error when it cannot.
  SingleNode(boost::asio::io_context& loop, const LaunchPlan& plan);

  void join() override;
  void fail(const RoundOver& failure) override;
  void finish() override { tell(JobDone{}); }
  void leave(const std::string& why) override;

 private:
  Round round_ = {};
  std::optional<StoreServer> store_ = {};
  int restarts_ = 0;
};

}  // namespace acc
