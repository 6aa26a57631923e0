// SPDX-License-Identifier: Apache-2.0
#include "acc/rendezvous/dead_node_probe.hpp"

#include <optional>
#include <string>
#include <utility>

#include "acc/base/log.hpp"
#include "acc/store/network.hpp"

namespace acc::launcher {

DeadNodeProbe::DeadNodeProbe(net::io_context& loop, std::chrono::milliseconds timeout,
                             std::function<void(const StoreAddress&)> on_ended)
    : loop_(loop), timeout_(timeout), on_ended_(std::move(on_ended)) {}

DeadNodeProbe::~DeadNodeProbe() {
  stop();
}

void DeadNodeProbe::start(const std::vector<StoreAddress>& nodes) {
  stop();
  for (const StoreAddress& node : nodes) connect(node);
}

void DeadNodeProbe::stop() {
  for (const auto& attempt : std::exchange(attempts_, {})) attempt->cancel();
}

void DeadNodeProbe::connect(const StoreAddress& node) {
  attempts_.push_back(std::make_shared<Connecting>(loop_));
  attempts_.back()->start(node.host, node.port, timeout_,
                          [this, node, attempt = std::weak_ptr(attempts_.back())](
                              const std::optional<net::tcp::socket>& socket, const std::string&) {
                            const auto connecting = attempt.lock();
                            if (socket || !connecting || !connecting->was_refused()) return;
                            log::debug("rendezvous: no process listens at {} any more", to_string(node));
                            on_ended_(node);
                          });
}

}  // namespace acc::launcher
