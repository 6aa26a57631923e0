// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/io_context.hpp>
#include <memory>

#include "acc/plan/launch_plan.hpp"
#include "acc/rendezvous/board.hpp"
#include "acc/store/store.hpp"

namespace acc::launcher {

/// The board of the plan's backend, at `store`, which outlives it.
std::unique_ptr<Board> make_board(boost::asio::io_context& loop, const LaunchPlan& plan, Store& store,
                                  Board::Events events);

}  // namespace acc::launcher
