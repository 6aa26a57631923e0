// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/io_context.hpp>
#include <memory>
#include <string>

#include "acc/plan/rendezvous_plan.hpp"
#include "acc/rendezvous/board.hpp"
#include "acc/store/dialer.hpp"

namespace acc {

/// The board of the job `run_id` that `wanted` asks for, in the store at `store`. With etcd nodes find the
/// host there, and meet in its store as with c10d.
std::unique_ptr<Board> make_board(boost::asio::io_context& loop, const RendezvousPlan& wanted,
                                  const std::string& run_id, const StoreAddress& store, Board::Events events);

}  // namespace acc
