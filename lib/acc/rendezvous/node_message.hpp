// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "acc/base/own_addresses.hpp"
#include "acc/rendezvous/rendezvous.hpp"

namespace acc::launcher {

/// A node as it introduces itself.
struct NodeInfo {
  /// The machine's name, for the user.
  std::string host = {};
  /// How other nodes reach it.
  std::string addr = {};
  int pid = 0;
  /// Static rendezvous only.
  int node_rank = 0;
  std::string role = "default";
  int workers = 1;
  /// Ports where it would serve the store of the next round's workers, and where nodes would connect to it.
  std::uint16_t store_port = 0;
  std::uint16_t node_port = 0;
  /// What it understands: see kProtocol.
  int protocol = 1;
  /// Numeric addresses of its network interfaces, without loopback; its workers connect from one of them.
  /// Empty: not known.
  std::vector<std::string> addresses = {};
  /// The address from which it is connected; filled in by the coordinator.
  std::string seen_at = {};

  bool operator==(const NodeInfo&) const = default;
};

/// What a node tells of its addresses: none if there are very many, since a list without the one that it uses
/// would lock it out.
std::vector<std::string> addresses_to_tell(const OwnNames& machine);
/// Whether the node's addresses are known, and there is no NAT between it and its coordinator, whose own node
/// has no `seen_at`.
bool is_seen_directly(const NodeInfo& node);
/// Whether both are the same process of one machine, and of one machine.
bool is_same_process(const NodeInfo& first, const NodeInfo& second);
bool is_same_machine(const NodeInfo& first, const NodeInfo& second);

/// What a node took part in before it connects anew.
struct NodeHistory {
  /// The last round that it was in; 0: none.
  int round = 0;
  int restarts = 0;
  /// Node port of the coordinator or successor that it has asked for the next round since then; 0: none.
  int asked_port = 0;
  /// The round from which it was dropped, so that it has been in none since; 0: none.
  int dropped_round = 0;
  Stall stall = {};
  bool operator==(const NodeHistory&) const = default;
};

/// The messages of nodes of `acc`. With a secret both sides prove it first: the side that has connected sends
/// a challenge, and the other answers with its proof and a challenge of its own.
struct Challenge {
  std::string nonce = {};
  bool operator==(const Challenge&) const = default;
};
struct Proof {
  std::string nonce = {};
  std::string proof = {};
  bool operator==(const Proof&) const = default;
};

/// The version of these messages; the coordinator refuses nodes that speak another.
inline constexpr int kNodeProtocol = 1;

/// From a node to the coordinator:
struct Hello {
  int version = kNodeProtocol;
  std::string run_id = {};
  NodeInfo node = {};
  /// The job runs already, with this node as its coordinator: a host of another job of its name must yield.
  bool is_coordinator = false;
  NodeHistory history = {};
  /// Proves that it knows the secret, if there is one.
  std::string proof = {};
  bool operator==(const Hello&) const = default;
};
/// It has no worker and wants a round.
struct Join {
  std::uint16_t store_port = 0;
  /// As in NodeInfo, where they may have changed; empty: very many, or the node of an older acc, which tells
  /// none.
  std::vector<std::string> addresses = {};
  bool operator==(const Join&) const = default;
};
struct WorkerFailed {
  int round = 0;
  RoundOver failure = {};
  bool operator==(const WorkerFailed&) const = default;
};
/// It is in that round, and counts in no earlier one.
struct RoundEntered {
  int round = 0;
  bool operator==(const RoundEntered&) const = default;
};
struct WorkersDone {
  int round = 0;
  bool operator==(const WorkersDone&) const = default;
};
struct Leave {
  std::string reason = {};
  /// The coordinator was silent for too long, and the nodes go on without it.
  bool superseded = false;
  /// Of the job, if it ends because of this.
  int exit_code = 75;
  bool operator==(const Leave&) const = default;
};

/// From the coordinator to a node:
struct RoundBegins {
  int number = 0;
  RoundReady ready = {};
  /// The nodes that would replace the coordinator if it were lost, in order.
  std::vector<NodeInfo> successors = {};
  NodeInfo coordinator = {};
  /// Nodes of `acc` in this round.
  int nodes = 1;
  /// To group rank 0, which serves the workers' store: addresses of its clients; empty: any.
  std::vector<std::string> clients = {};
  /// To the coordinator and its successors: addresses of the other nodes of the job; empty: any.
  std::vector<std::string> addresses = {};
  /// For a node that replaces the coordinator.
  Stall stall = {};
  bool operator==(const RoundBegins&) const = default;
};
struct RoundEnds {
  RoundOver verdict = {};
  bool operator==(const RoundEnds&) const = default;
};
/// This node was silent for so long that the others went on; it may join again.
struct Dropped {
  std::string reason = {};
  bool operator==(const Dropped&) const = default;
};
/// The coordinator of the job is another node.
struct Moved {
  std::string addr = {};
  std::uint16_t node_port = 0;
  /// It has begun anew: nobody may go on with the last round.
  bool is_another_job = false;
  bool operator==(const Moved&) const = default;
};
/// All places of the job are taken, and this node's address is not one of theirs: it may ask again later.
struct Full {
  bool operator==(const Full&) const = default;
};
struct JobEnds {
  bool operator==(const JobEnds&) const = default;
};
struct Waiting {
  std::string text = {};
  /// To a spare: as in RoundBegins.
  std::vector<NodeInfo> successors = {};
  /// A round runs without this node, which waits for a place in the job however long that takes.
  bool spare = false;
  bool operator==(const Waiting&) const = default;
};

/// From the coordinator to a node: all ranks that are slow now.
struct SlowRanks {
  int round = 0;
  std::vector<SlowRank> ranks = {};
  bool operator==(const SlowRanks&) const = default;
};

/// Somebody looks at the job. To the coordinator: this node wants the ranks of all others, and Peers follows,
/// then a RankReport of each. From the coordinator: a RankReport of this node is wanted.
struct RanksWanted {
  int round = 0;
  bool operator==(const RanksWanted&) const = default;
};
/// From the coordinator to a node: the others of the round that run acc.
struct Peers {
  int round = 0;
  std::vector<PeerNode> nodes = {};
  bool operator==(const Peers&) const = default;
};

/// To the coordinator: the user of this node wants the job to end on all nodes.
struct StopJob {
  /// Of the job.
  int exit_code = 0;
  bool operator==(const StopJob&) const = default;
};

/// Versions of NodeInfo::protocol: since when a node understands EndNotice, since when NodeProgress and
/// SlowRanks, since when RanksWanted, Peers and RankReport, since when StopJob, since when RoundEntered, and
/// since when NodeHang and JobHang.
/// The newest is what this acc speaks.
constexpr int kProtocolOfEndNotice = 2;
constexpr int kProtocolOfProgress = 3;
constexpr int kProtocolOfReports = 4;
constexpr int kProtocolOfStop = 5;
constexpr int kProtocolOfEntry = 6;
constexpr int kProtocolOfHang = 7;
constexpr int kProtocol = kProtocolOfHang;

/// Both sides send it, so each notices when the other is silent.
struct Heartbeat {
  bool operator==(const Heartbeat&) const = default;
};

using NodeMessage =
    std::variant<Challenge, Proof, Hello, Join, WorkerFailed, WorkersDone, Leave, RoundBegins, RoundEnds,
                 Dropped, Moved, Full, JobEnds, Waiting, EndNotice, NodeProgress, SlowRanks, RanksWanted,
                 Peers, RankReport, StopJob, RoundEntered, NodeHang, JobHang, Heartbeat>;

/// One line of JSON, with its newline.
std::string encode(const NodeMessage& message);

/// Throws Error for anything else; unknown fields are ignored.
NodeMessage decode(std::string_view line);

}  // namespace acc::launcher
