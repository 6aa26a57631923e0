// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "acc/rendezvous/board.hpp"
#include "acc/store/dialer.hpp"

namespace boost::asio {
class io_context;
}

namespace acc {

struct StaticBoardOptions {
  /// The store of node 0, for agents and workers.
  StoreAddress store = {};
  std::string run_id = "none";
  int num_nodes = 1;
  /// For all nodes to come.
  std::chrono::milliseconds join_timeout = std::chrono::seconds(900);
  /// How often to look who is missing, for people to read.
  std::chrono::milliseconds look = std::chrono::seconds(1);
};

/// torchrun's static rendezvous: nodes know their ranks, and meet in the store of node 0, whoever hosts it.
/// Nobody notices that a node is gone, so on_change and on_closed never come; and since each node restarts
/// its workers alone, the store that it shares with the agents is never emptied: `prepare` does not come.
class StaticBoard : public Board {
 public:
  StaticBoard(boost::asio::io_context& loop, StaticBoardOptions options, Events events);
  ~StaticBoard() override;

  void add(OwnNode node) override;
  void remove(const OwnNode& node) override;
  void next_round() override;
  void finish(std::function<void(bool all)> done) override;
  void close(std::function<void()> done) override;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace acc
