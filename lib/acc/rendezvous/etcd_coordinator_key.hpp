// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "acc/base/event_loop.hpp"
#include "acc/rendezvous/etcd_messages.hpp"

namespace acc::launcher {

/// Name of the key that says where a job's nodes connect.
std::string etcd_coordinator_key(const std::string& prefix, const std::string& run_id);

/// The key in etcd that says where a job's nodes connect. The node that creates it hosts the job, for as long
/// as it keeps its lease alive.
class EtcdCoordinatorKey {
 public:
  /// How a claim ended.
  struct ClaimResult {
    enum class Outcome {
      acquired,  ///< the key is ours
      held,      ///< by another node; `text` is its address
      failed,    ///< a transient error, described in `text`
      refused,   ///< a permanent error, described in `text`
    };
    Outcome outcome = Outcome::failed;
    std::string text = {};

    bool operator==(const ClaimResult&) const = default;
  };
  using OnResult = std::function<void(const ClaimResult&)>;
  /// What is to be done when another node has the key that was this one's.
  enum class Loss {
    accept,
    take_back,
    wait,  ///< for another owner
  };
  /// Called with the new owner's address. `has_lapsed`: the key was free for a while, since etcd did not hear
  /// from this node.
  using OnLost = std::function<Loss(const std::string& address, bool has_lapsed)>;

  /// `gateway` outlives it.
  EtcdCoordinatorKey(net::io_context& loop, EtcdGateway& gateway, std::string key, OnLost on_lost);

  /// Writes `address`, this node's, into the key if nobody hosts, or if it names `replaced_address`, of a
  /// host that is lost. Cancels an earlier claim. After success the key is kept alive until release().
  void claim(const std::string& address, const std::string& replaced_address, OnResult on_result);

  /// Reads who hosts: `held`, or `failed` if nobody does. Cancels a claim.
  void find(OnResult on_result);

  /// Cancels a claim, and removes the key if it is ours; calls `on_done` when it is removed, or etcd does
  /// not answer. A second call replaces `on_done`.
  void release(std::function<void()> on_done = {});

  /// Lifetime of the lease: how long the key of a dead host stays.
  static constexpr std::chrono::seconds kLeaseTtl{5};

 private:
  using OnBody = std::function<void(const std::string& body)>;

  void read();
  void grant(std::int64_t revision);
  void write(std::int64_t revision);
  void keep_alive_later(std::chrono::milliseconds pause);
  void check();
  void claim_again(const std::string& replaced_address, bool has_lapsed);
  void claim_later(const std::string& replaced_address, bool has_lapsed);
  void call_released();
  void post(const EtcdRequest& request, EtcdGateway::Handler handler);
  void ask(const EtcdRequest& request, OnBody on_body);
  void answer(ClaimResult::Outcome outcome, std::string text = {});

  net::steady_timer timer_;
  EtcdGateway& gateway_;
  std::string key_;
  OnLost on_lost_;
  std::string address_ = {};
  std::string replaced_address_ = {};
  OnResult on_result_ = {};
  std::function<void()> on_released_ = {};
  bool revoking_ = false;
  std::int64_t lease_ = 0;
  /// Expires at each claim and release, so that replies to earlier requests are ignored.
  std::shared_ptr<bool> current_ = std::make_shared<bool>(true);
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace acc::launcher
