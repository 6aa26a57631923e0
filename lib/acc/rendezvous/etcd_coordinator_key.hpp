// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "acc/rendezvous/etcd_messages.hpp"

namespace acc::launcher {

/// Under which key a job's nodes look for the one that hosts it.
std::string etcd_coordinator_key(const std::string& prefix, const std::string& run_id);

/// The key in etcd that says where a job's nodes connect. Whoever creates it hosts the job, for as long as it
/// keeps its lease alive.
class EtcdCoordinatorKey {
 public:
  /// How a claim ended.
  struct Claimed {
    enum class How {
      own,      ///< the key is ours
      held,     ///< by another node; `text` is its place
      failed,   ///< no answer or a bad one, for the reason in `text`; another time it may be better
      refused,  ///< this server never will, for the reason in `text`
    };
    How how = How::failed;
    std::string text = {};

    bool operator==(const Claimed&) const = default;
  };
  using Done = std::function<void(const Claimed&)>;
  /// Called with the other's place when a key that was ours is another node's.
  using Lost = std::function<void(const std::string& place)>;

  /// `gateway` outlives it.
  EtcdCoordinatorKey(boost::asio::io_context& loop, EtcdGateway& gateway, std::string key, Lost lost);

  /// Writes `own` where nobody hosts, or the host that did so at `replaced` is lost. One claim at a time:
  /// the next takes the place of the one before. When it has succeeded the key is kept until release().
  void claim(const std::string& own, const std::string& replaced, Done done);

  /// Says who hosts, as `held`; nobody is `failed`. Takes the place of a claim, as the next one does.
  void find(Done done);

  /// Ends a claim, and removes the key if it is ours; calls `done` when it is gone, or etcd does not answer.
  /// A second call takes the place of the first, and its `done` waits for the same.
  void release(std::function<void()> done = {});

  /// How long the key of a host that has died stays.
  static constexpr std::chrono::seconds kLifetime{5};

 private:
  using Then = std::function<void(const std::string& body)>;

  void read();
  void grant(std::int64_t revision);
  void write(std::int64_t revision);
  void keep(std::chrono::milliseconds pause);
  void check();
  void claim_again();
  void call_released();
  void post(const EtcdRequest& request, EtcdGateway::Handler handler);
  void ask(const EtcdRequest& request, Then then);
  void answer(Claimed::How how, std::string text = {});

  boost::asio::steady_timer timer_;
  EtcdGateway& gateway_;
  std::string key_;
  Lost lost_;
  std::string own_ = {};
  std::string replaced_ = {};
  Done done_ = {};
  std::function<void()> released_ = {};
  bool revoking_ = false;
  std::int64_t lease_ = 0;
  /// Answers to what was asked before the last claim or release count no more.
  std::shared_ptr<bool> current_ = std::make_shared<bool>(true);
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace acc::launcher
