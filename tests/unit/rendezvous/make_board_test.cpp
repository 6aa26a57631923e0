// SPDX-License-Identifier: Apache-2.0
#include "acc/rendezvous/make_board.hpp"

#include <boost/asio/io_context.hpp>

#include "acc/store/server.hpp"
#include "support/catch.hpp"
#include "support/drive.hpp"

using namespace acc;

namespace {

// The round of a job that has one node.
Round round_of(RendezvousBackend backend) {
  boost::asio::io_context loop;
  const StoreServer server(loop, {});
  RendezvousPlan wanted;
  wanted.backend = backend;
  std::optional<Round> round;
  const auto board =
      make_board(loop, wanted, "job7", {"127.0.0.1", server.port()},
                 {.on_round = [&](const Board::Rounds& rounds) { round = rounds.at(0).second; }});
  board->add({.addr = "10.0.0.1", .pid = 1, .store_port = 4000});
  board->next_round();
  test::drive(loop, [&] { return round.has_value(); });
  if (backend == RendezvousBackend::static_) CHECK(round->master_port == server.port());
  return *round;
}

}  // namespace

TEST_CASE("make_board: with a static rendezvous workers use the store where agents meet", "[rendezvous]") {
  CHECK(round_of(RendezvousBackend::static_).master_addr == "127.0.0.1");
}

TEST_CASE("make_board: with c10d and etcd the first node has a store of its own", "[rendezvous]") {
  CHECK(round_of(RendezvousBackend::c10d).master_addr == "10.0.0.1");
  CHECK(round_of(RendezvousBackend::etcd).master_port == 4000);
}
