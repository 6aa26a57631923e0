// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/io_context.hpp>
#include <memory>

#include "acc/plan/launch_plan.hpp"
#include "acc/rendezvous/board.hpp"
#include "acc/store/client.hpp"

namespace acc {

/// The board of the plan's backend, at the store of `client`, which outlives it.
std::unique_ptr<Board> make_board(boost::asio::io_context& loop, const LaunchPlan& plan, StoreClient& client,
                                  Board::Events events);

}  // namespace acc
