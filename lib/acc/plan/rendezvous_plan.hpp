// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace acc::launcher {

/// How the nodes of a job find each other.
enum class RendezvousKind { static_, c10d, etcd };

/// The version of torch of the other agents. It determines where workers of a c10d job find their store.
enum class TorchAgents {
  v2_4,  ///< worker 0 serves it, at a new address in each round
  v2_5,  ///< it is the rendezvous store itself
  v2_6,  ///< and later: node 0 serves it
};

/// The settings of the rendezvous, named after torchrun's flags and `--rdzv-conf` keys.
struct RendezvousPlan {
  RendezvousKind backend = RendezvousKind::static_;
  /// The endpoint; empty host: this machine. For the static back end the address of node 0's store.
  std::string endpoint_host = {};
  std::uint16_t endpoint_port = 0;
  /// c10d: the file of the store (`store_type=file`), used instead of the endpoint.
  std::optional<std::filesystem::path> store_file = {};
  /// The number of nodes of the job (`--nnodes MIN:MAX`).
  int min_nodes = 1;
  int max_nodes = 1;
  /// The rank of `--node-rank`, used by the static back end.
  int node_rank = 0;
  /// The address under which other nodes reach this one (`--local-addr`); empty: detected.
  std::string local_addr = {};
  /// Whether this node hosts the store (`is_host`); absent: if the endpoint is this machine.
  std::optional<bool> is_host = {};
  std::chrono::milliseconds join_timeout = std::chrono::seconds(600);
  /// How long to wait for more than `min_nodes`.
  std::chrono::milliseconds last_call_timeout = std::chrono::seconds(30);
  std::chrono::milliseconds close_timeout = std::chrono::seconds(30);
  std::chrono::milliseconds keep_alive_interval = std::chrono::seconds(5);
  int keep_alive_max_attempt = 3;
  /// The timeout of one operation on a store (`read_timeout`).
  std::chrono::milliseconds read_timeout = std::chrono::seconds(60);
  /// How long the endpoint may have no store that answers (`read_timeout`, where it is given); absent: the
  /// join timeout.
  std::optional<std::chrono::milliseconds> endpoint_timeout = {};
  /// A node that is silent for this long is lost (`--node-timeout`); absent: see timeout_of_node().
  std::optional<std::chrono::milliseconds> node_timeout = {};
  /// The number of surplus nodes that wait to replace lost ones (`--spares`); absent: no limit, as in
  /// torchrun.
  std::optional<int> spares = {};
  /// The version of torch of nodes that run torchrun (`torch_version`, a key of acc).
  TorchAgents agents = TorchAgents::v2_6;
  /// etcd: the prefix of the keys, and the TLS files of the client.
  std::string etcd_prefix = "/acc/rendezvous";
  std::string protocol = "http";
  std::string cert = {};
  std::string key = {};
  std::string cacert = {};

  /// Whether the job survives the loss of a node: it continues with fewer nodes, or restarts.
  bool survives_loss(int restarts_left) const { return min_nodes < max_nodes || restarts_left > 0; }

  /// How long a node may be silent; longer if its loss would end the job.
  std::chrono::milliseconds timeout_of_node(bool job_survives) const {
    return node_timeout.value_or(std::chrono::seconds(job_survives ? 15 : 60));
  }

  /// The secret that connections between nodes authenticate with: a file (`secret_file`, a key of acc), or
  /// the secret itself (ACC_JOB_SECRET), which appears in no output.
  std::filesystem::path secret_file = {};
  std::optional<std::string> secret = {};

  bool operator==(const RendezvousPlan&) const = default;
};

/// The variable with the secret of the job. It is not passed to workers.
constexpr const char* kSecretVariable = "ACC_JOB_SECRET";

/// The ranks of this node in one round of the rendezvous. Nodes may run different numbers of workers, so
/// they do not follow from the rank of the node.
struct Round {
  int machine_rank = 0;
  int num_machines = 1;
  /// The global rank of this node's worker 0, and the number of workers of all nodes.
  int first_rank = 0;
  int world_size = 1;
  /// The same, counting only workers of this node's role.
  int first_role_rank = 0;
  int role_world_size = 1;
  std::string master_addr = "127.0.0.1";
  std::uint16_t master_port = 0;
  /// Whether an agent serves the store at master_addr:master_port; otherwise worker 0 does.
  bool use_agent_store = true;

  bool operator==(const Round&) const = default;
};

}  // namespace acc::launcher
