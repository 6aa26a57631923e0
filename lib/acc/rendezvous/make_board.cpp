// SPDX-License-Identifier: Apache-2.0
#include "acc/rendezvous/make_board.hpp"

#include <optional>
#include <utility>

#include "acc/rendezvous/c10d_board.hpp"
#include "acc/rendezvous/static_board.hpp"

namespace acc::launcher {

std::unique_ptr<Board> make_board(boost::asio::io_context& loop, const LaunchPlan& plan, Store& store,
                                  Board::Events events) {
  const RendezvousPlan& wanted = plan.rendezvous;
  std::optional<StoreAddress> endpoint;
  if (!wanted.store_file) endpoint = {wanted.endpoint_host, wanted.endpoint_port};
  if (wanted.backend == RendezvousBackend::static_) {
    return std::make_unique<StaticBoard>(loop, store,
                                         StaticBoardOptions{.master = {plan.master_addr, plan.master_port},
                                                            .run_id = plan.run_id,
                                                            .num_nodes = wanted.most_nodes,
                                                            .join_timeout = wanted.join_timeout},
                                         std::move(events));
  }
  return std::make_unique<C10dBoard>(
      loop, store,
      C10dBoardOptions{.run_id = plan.run_id,
                       .machine = {.least_nodes = static_cast<std::size_t>(wanted.least_nodes),
                                   .most_nodes = static_cast<std::size_t>(wanted.most_nodes),
                                   .join_timeout = wanted.join_timeout,
                                   .last_call = wanted.last_call_timeout,
                                   .keep_alive_interval = wanted.keep_alive_interval,
                                   .keep_alive_max_attempt = wanted.keep_alive_max_attempt},
                       .read_timeout = wanted.read_timeout,
                       .agents = wanted.agents,
                       .agent_serves = plan.use_agent_store,
                       .endpoint = endpoint},
      std::move(events));
}

}  // namespace acc::launcher
