// SPDX-License-Identifier: Apache-2.0
#include "acc/rendezvous/etcd_coordinator_key.hpp"

#include <fmt/format.h>

#include <utility>

namespace acc::launcher {
namespace {

constexpr int kHttpOk = 200;
constexpr int kNotFound = 404;

// Often enough that one lost reply does not matter.
constexpr auto kKeepAliveInterval = std::chrono::milliseconds(EtcdCoordinatorKey::kLeaseTtl) / 3;
constexpr auto kRenewalRetry = std::chrono::milliseconds(EtcdCoordinatorKey::kLeaseTtl) / 10;

// Errors of the server or a proxy that may pass by themselves.
bool is_transient(int status) {
  constexpr int kTimeout = 408;
  constexpr int kTooMany = 429;
  return status == 0 || status == kTimeout || status == kTooMany || status >= 500;
}

}  // namespace

std::string etcd_coordinator_key(const std::string& prefix, const std::string& run_id) {
  return fmt::format("{}/{}/hub", prefix.substr(0, prefix.find_last_not_of('/') + 1), run_id);
}

EtcdCoordinatorKey::EtcdCoordinatorKey(boost::asio::io_context& loop, EtcdGateway& gateway, std::string key,
                                       Lost lost)
    : timer_(loop), gateway_(gateway), key_(std::move(key)), lost_(std::move(lost)) {}

void EtcdCoordinatorKey::claim(const std::string& own, const std::string& replaced, Done done) {
  timer_.cancel();
  current_ = std::make_shared<bool>(true);
  own_ = own;
  replaced_ = replaced;
  done_ = std::move(done);
  lease_ = 0;
  read();
}

void EtcdCoordinatorKey::find(Done done) {
  claim("", "", std::move(done));
}

void EtcdCoordinatorKey::read() {
  ask(etcd_read(key_), [this](const std::string& body) {
    const auto key = etcd_key(body);
    if (!key) return answer(Claimed::How::refused, "it is not etcd: it answered " + etcd_error(body));
    if (own_.empty() && key->revision == 0) return answer(Claimed::How::failed, "nobody hosts the job");
    const bool free = key->revision == 0 || key->value == own_ || key->value == replaced_;
    if (!free) return answer(Claimed::How::held, key->value);
    grant(key->revision);
  });
}

void EtcdCoordinatorKey::grant(std::int64_t revision) {
  ask(etcd_grant(static_cast<int>(kLeaseTtl.count())), [this, revision](const std::string& body) {
    const auto lease = etcd_granted(body);
    if (!lease) return answer(Claimed::How::failed, "it granted no lease: " + etcd_error(body));
    lease_ = *lease;
    write(revision);
  });
}

void EtcdCoordinatorKey::write(std::int64_t revision) {
  ask(etcd_write_if(key_, own_, lease_, revision), [this](const std::string& body) {
    const auto written = etcd_written(body);
    if (!written) return answer(Claimed::How::failed, "it wrote no key: " + etcd_error(body));
    if (!*written) return read();
    keep_alive_later(kKeepAliveInterval);
    answer(Claimed::How::own);
  });
}

void EtcdCoordinatorKey::keep_alive_later(std::chrono::milliseconds pause) {
  timer_.expires_after(pause);
  timer_.async_wait([this, current = std::weak_ptr<bool>(current_)](const boost::system::error_code& error) {
    if (!error && !current.expired()) check();
  });
}

// The lease stays alive when another host has overwritten the key, so the key is read as well.
void EtcdCoordinatorKey::check() {
  post(etcd_keep_alive(lease_), [this](const EtcdReply& kept) {
    if (is_transient(kept.status)) return keep_alive_later(kRenewalRetry);
    if (kept.status != kHttpOk || !etcd_kept_alive(kept.body).value_or(false))
      return claim_again(own_, /*lapsed=*/true);
    post(etcd_read(key_), [this](const EtcdReply& found) {
      if (is_transient(found.status)) return keep_alive_later(kRenewalRetry);
      const auto key = etcd_key(found.body);
      if (!key || key->lease != lease_) return claim_again(own_, /*lapsed=*/false);
      keep_alive_later(kKeepAliveInterval);
    });
  });
}

void EtcdCoordinatorKey::claim_again(const std::string& replaced, bool lapsed) {
  claim(own_, replaced, [this, replaced, lapsed](const Claimed& claimed) {
    if (claimed.how == Claimed::How::own) return;
    if (claimed.how == Claimed::How::held) {
      if (lost_(claimed.text, lapsed)) claim_again(claimed.text, lapsed);
      return;
    }
    timer_.expires_after(kRenewalRetry);
    timer_.async_wait([this, replaced, lapsed,
                       current = std::weak_ptr<bool>(current_)](const boost::system::error_code& error) {
      if (!error && !current.expired()) claim_again(replaced, lapsed);
    });
  });
}

void EtcdCoordinatorKey::release(std::function<void()> done) {
  timer_.cancel();
  current_ = std::make_shared<bool>(true);
  done_ = nullptr;
  released_ = std::move(done);
  if (lease_ == 0) return revoking_ ? void() : call_released();
  revoking_ = true;
  gateway_.post(etcd_revoke(std::exchange(lease_, 0)),
                [this, alive = std::weak_ptr<bool>(alive_)](const EtcdReply&) {
                  if (alive.expired()) return;
                  revoking_ = false;
                  call_released();
                });
}

void EtcdCoordinatorKey::call_released() {
  if (const auto done = std::exchange(released_, nullptr)) done();
}

void EtcdCoordinatorKey::post(const EtcdRequest& request, EtcdGateway::Handler handler) {
  gateway_.post(request, [handler = std::move(handler),
                          current = std::weak_ptr<bool>(current_)](const EtcdReply& reply) {
    if (!current.expired()) handler(reply);
  });
}

void EtcdCoordinatorKey::ask(const EtcdRequest& request, Then then) {
  post(request, [this, then = std::move(then)](const EtcdReply& reply) {
    if (reply.status == kHttpOk) return then(reply.body);
    if (reply.status == 0) return answer(Claimed::How::failed, reply.body);
    const std::string messages = fmt::format("{} ({})", etcd_error(reply.body), reply.status);
    if (is_transient(reply.status)) return answer(Claimed::How::failed, messages);
    answer(Claimed::How::refused, reply.status == kNotFound
                                      ? "it has no JSON gateway of etcd's API version 3: " + messages
                                      : "it refuses the request: " + messages);
  });
}

void EtcdCoordinatorKey::answer(Claimed::How how, std::string text) {
  if (how != Claimed::How::own) lease_ = 0;
  if (const Done done = std::exchange(done_, nullptr)) done({how, std::move(text)});
}

}  // namespace acc::launcher
