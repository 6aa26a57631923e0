// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "acc/control/job_view.hpp"
#include "acc/control/rank_state.hpp"

namespace acc::launcher {

/// The ranks of a node as `acc ps --json` shows them: what each says, and its resource use, in the same
/// order.
nlohmann::json to_json(const std::vector<RankView>& ranks, const std::vector<RankUsage>& usage);

/// What the agent of a job knows of another node.
struct NodeReport {
  int node_rank = 0;
  std::string host = {};
  int workers = 0;
  /// The lowest of them; -1: it is not known.
  int first_rank = -1;
  /// Why its ranks are not known, for the user; empty: they are, or it has not answered.
  std::string problem = {};
  /// Since it has reported; absent: it has not.
  std::optional<std::chrono::milliseconds> age = {};
  /// The text of to_json(ranks, usage), as that node has sent it; empty: it could not say.
  std::string ranks = {};
};

/// What the agent of a job answers when it is asked for the other nodes.
struct NodeReports {
  /// This machine's name, and its rank among the nodes.
  std::string host = {};
  int node_rank = 0;
  /// Why other nodes are not shown, for the user; empty: they are.
  std::string reason = {};
  std::vector<NodeReport> nodes = {};
  /// As in JobView, for a viewer that has no ranks of the job itself; world_size 0: not said.
  int world_size = 0;
  int attempt = 0;
  int max_restarts = 0;
};

/// The texts of the first 3 MiB of ranks; nodes beyond them are there without.
nlohmann::json to_json(const NodeReports& reports);

/// Another node of a job, as a viewer shows it. All texts are printable().
struct NodeView {
  int node_rank = 0;
  std::string host = {};
  /// How many ranks it has, and the lowest of them; -1: not known.
  int workers = 0;
  int first_rank = -1;
  /// As NodeReport::age.
  std::optional<std::chrono::milliseconds> age = {};
  /// Why it is shown without its ranks: `it runs an older acc`; empty: it is shown with them.
  std::string problem = {};
  std::vector<RankView> ranks = {};
  /// In the same order.
  std::vector<RankUsage> usage = {};
};

/// The other nodes of a job.
struct OtherNodes {
  /// As in NodeReports.
  std::string host = {};
  int node_rank = 0;
  std::string reason = {};
  /// By node rank.
  std::vector<NodeView> nodes = {};
  /// When that was read.
  std::chrono::steady_clock::time_point time = {};
  /// As in NodeReports.
  int world_size = 0;
  int attempt = 0;
  int max_restarts = 0;
};

/// Of to_json(NodeReports). What a node itself has sent may be anything: if it cannot be read, or is of ranks
/// that are not its own, that node is shown without ranks. Throws Error{system} if the rest is invalid.
OtherNodes other_nodes_from_json(const nlohmann::json& reports);

/// A node as `acc ps --json` shows it.
nlohmann::json to_json(const NodeView& node);

/// RankUsage::state, or `silent 12s` if the node has not reported for 10 seconds.
std::string shown_state(const NodeView& node, const RankUsage& usage);

/// How many ranks this node has yet to start, as while its Python imports.
int unstarted_ranks(const JobView& job, const OtherNodes& other_nodes);

/// What is not shown of a job, and why, a line each: `2 ranks on b: it runs an older acc`.
std::vector<std::string> lines_of_missing(const JobView& job, const OtherNodes& other_nodes);

}  // namespace acc::launcher
