// SPDX-License-Identifier: Apache-2.0
#include "acc/rendezvous/rendezvous_backend.hpp"

#include <optional>
#include <utility>

#include "acc/base/event_loop.hpp"
#include "acc/rendezvous/c10d_backend.hpp"
#include "acc/rendezvous/static_backend.hpp"

namespace acc::launcher {

std::unique_ptr<RendezvousBackend> make_backend(net::io_context& loop, const LaunchPlan& plan, Store& store,
                                                RendezvousBackend::Events events) {
  const RendezvousPlan& settings = plan.rendezvous;
  std::optional<StoreAddress> endpoint;
  if (!settings.store_file) endpoint = {settings.endpoint_host, settings.endpoint_port};
  if (settings.backend == RendezvousKind::static_) {
    return std::make_unique<StaticBackend>(
        loop, store,
        StaticBackendOptions{.master = {plan.master_addr, plan.master_port},
                             .run_id = plan.run_id,
                             .num_nodes = settings.max_nodes,
                             .join_timeout = settings.join_timeout},
        std::move(events));
  }
  return std::make_unique<C10dBackend>(
      loop, store,
      C10dBackendOptions{.run_id = plan.run_id,
                         .machine = {.min_nodes = static_cast<std::size_t>(settings.min_nodes),
                                     .max_nodes = static_cast<std::size_t>(settings.max_nodes),
                                     .join_timeout = settings.join_timeout,
                                     .last_call = settings.last_call_timeout,
                                     .keep_alive_interval = settings.keep_alive_interval,
                                     .keep_alive_max_attempt = settings.keep_alive_max_attempt},
                         .read_timeout = settings.read_timeout,
                         .agents = settings.agents,
                         .agent_serves = plan.use_agent_store,
                         .endpoint = endpoint,
                         .first_local_id = settings.store_file ? plan.local_id : 0},
      std::move(events));
}

}  // namespace acc::launcher
