// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace acc::launcher {

/// How the nodes of a job find each other.
enum class RendezvousBackend { static_, c10d, etcd };

/// Which torch the other agents have. It decides where workers of a c10d job find their store.
enum class TorchAgents {
  v2_4,  ///< worker 0 serves it, at an address that each round has anew
  v2_5,  ///< it is the rendezvous store itself
  v2_6,  ///< and later: node 0 serves it
};

/// What was asked of the rendezvous; the names are those of torchrun's flags and `--rdzv-conf` keys.
struct RendezvousPlan {
  RendezvousBackend backend = RendezvousBackend::static_;
  /// Where nodes meet; empty host: this machine. For the static backend the address of node 0's store.
  std::string endpoint_host = {};
  std::uint16_t endpoint_port = 0;
  /// c10d: nodes meet in this file (`store_type=file`), not at the endpoint.
  std::optional<std::filesystem::path> store_file = {};
  /// The job takes from `least_nodes` to `most_nodes` nodes (`--nnodes MIN:MAX`).
  int least_nodes = 1;
  int most_nodes = 1;
  /// The rank that was asked for (`--node-rank`); the static backend obeys it.
  int node_rank = 0;
  /// How the other nodes reach this one (`--local-addr`); empty: found out.
  std::string local_addr = {};
  /// Whether this node hosts the store (`is_host`); absent: when the endpoint names this machine.
  std::optional<bool> is_host = {};
  std::chrono::milliseconds join_timeout = std::chrono::seconds(600);
  /// How long to wait for more than `least_nodes`.
  std::chrono::milliseconds last_call_timeout = std::chrono::seconds(30);
  std::chrono::milliseconds close_timeout = std::chrono::seconds(30);
  std::chrono::milliseconds keep_alive_interval = std::chrono::seconds(5);
  int keep_alive_max_attempt = 3;
  /// Of one operation on a store.
  std::chrono::milliseconds read_timeout = std::chrono::seconds(60);
  /// A node that is silent for so long is lost (`--node-timeout`); absent: see timeout_of_node().
  std::optional<std::chrono::milliseconds> node_timeout = {};
  /// How many surplus nodes stay connected and replace lost ones (`--spares`); absent: all that come, as with
  /// torchrun.
  std::optional<int> spares = {};
  /// Which torch the nodes of torchrun have, where there are some (`torch_version`, acc's own key).
  TorchAgents agents = TorchAgents::v2_6;
  /// etcd: where keys go, and the client's TLS files.
  std::string etcd_prefix = "/acc/rendezvous";
  std::string protocol = "http";
  std::string cert = {};
  std::string key = {};
  std::string cacert = {};

  /// Whether the loss of a node does not end the job: others go on or take its place.
  bool survives_loss(int restarts_left) const { return least_nodes < most_nodes || restarts_left > 0; }

  /// How long a node may be silent: longer where its loss would end the job.
  std::chrono::milliseconds timeout_of_node(bool job_survives) const {
    return node_timeout.value_or(std::chrono::seconds(job_survives ? 15 : 60));
  }

  /// What the nodes' links prove: the file that holds it (`secret_file`, acc's own key), or the secret
  /// itself, which is in no output (ACC_JOB_SECRET).
  std::filesystem::path secret_file = {};
  std::optional<std::string> secret = {};

  bool operator==(const RendezvousPlan&) const = default;
};

/// The variable with the secret of the job. No worker gets it.
constexpr const char* kSecretVariable = "ACC_JOB_SECRET";

}  // namespace acc::launcher
