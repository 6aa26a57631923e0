// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/io_context.hpp>
#include <memory>

#include "acc/plan/launch_plan.hpp"
#include "acc/rendezvous/board.hpp"
#include "acc/store/client.hpp"

namespace acc {

/// The board of the plan's backend, at the store of `client`. `hosts`: the store is ours.
std::unique_ptr<Board> make_board(boost::asio::io_context& loop, const LaunchPlan& plan, StoreClient& client,
                                  bool hosts, Board::Events events);

}  // namespace acc
