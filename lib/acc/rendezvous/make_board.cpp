// SPDX-License-Identifier: Apache-2.0
#include "acc/rendezvous/make_board.hpp"

#include <algorithm>
#include <boost/asio/steady_timer.hpp>

namespace acc {
namespace {
// TEMPORARY: own nodes alone.
class OwnBoard : public Board {
 public:
  OwnBoard(boost::asio::io_context& loop, const LaunchPlan& plan, Events events)
      : plan_(plan), events_(std::move(events)), timer_(loop) {}
  void add(const OwnNode& node) override {
    remove(node);
    nodes_.push_back(node);
    if (open_)
      check();
    else if (static_cast<int>(nodes_.size()) <= plan_.rendezvous.most_nodes)
      events_.on_change();
  }
  void remove(const OwnNode& node) override {
    std::erase_if(nodes_, [&](const OwnNode& one) { return one.local_id == node.local_id; });
  }
  void next_round() override {
    open_ = true;
    again_ = true;
    check();
  }
  void close() override {}
  void finish(std::function<void()> done) override { done(); }

 private:
  void check() {
    const int n = static_cast<int>(nodes_.size());
    if (n >= plan_.rendezvous.most_nodes || (again_ && n >= plan_.rendezvous.least_nodes)) return complete();
    if (n < plan_.rendezvous.least_nodes) return;
    timer_.expires_after(plan_.rendezvous.last_call_timeout);
    timer_.async_wait([this](auto error) {
      if (!error && open_) complete();
    });
  }
  void complete() {
    open_ = false;
    timer_.cancel();
    const bool is_static = plan_.rendezvous.backend == RendezvousBackend::static_;
    std::ranges::sort(nodes_, [&](const OwnNode& a, const OwnNode& b) {
      if (is_static) return a.node_rank < b.node_rank;
      return std::tie(a.addr, a.pid, a.local_id) < std::tie(b.addr, b.pid, b.local_id);
    });
    std::vector<std::pair<OwnNode, Round>> places;
    const int n = std::min<int>(static_cast<int>(nodes_.size()), plan_.rendezvous.most_nodes);
    int first = 0, world = 0;
    for (int i = 0; i < n; ++i) world += nodes_[static_cast<std::size_t>(i)].local_world_size;
    for (int i = 0; i < n; ++i) {
      const OwnNode& node = nodes_[static_cast<std::size_t>(i)];
      places.emplace_back(node, Round{.machine_rank = i,
                                      .num_machines = n,
                                      .first_rank = first,
                                      .world_size = world,
                                      .first_role_rank = first,
                                      .role_world_size = world,
                                      .master_addr = is_static ? plan_.master_addr : nodes_[0].addr,
                                      .master_port = is_static ? plan_.master_port : nodes_[0].store_port});
      first += node.local_world_size;
    }
    events_.on_round(places);
  }
  const LaunchPlan& plan_;
  Events events_;
  boost::asio::steady_timer timer_;
  std::vector<OwnNode> nodes_ = {};
  bool open_ = true;
  bool again_ = false;
};
}  // namespace

std::unique_ptr<Board> make_board(boost::asio::io_context& loop, const LaunchPlan& plan, StoreClient&, bool,
                                  Board::Events events) {
  return std::make_unique<OwnBoard>(loop, plan, std::move(events));
}

}  // namespace acc
