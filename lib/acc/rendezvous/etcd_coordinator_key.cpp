// SPDX-License-Identifier: Apache-2.0
#include "acc/rendezvous/etcd_coordinator_key.hpp"

#include <fmt/format.h>

#include <utility>

#include "acc/base/event_loop.hpp"

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

EtcdCoordinatorKey::EtcdCoordinatorKey(net::io_context& loop, EtcdGateway& gateway, std::string key,
                                       OnLost on_lost)
    : timer_(loop), gateway_(gateway), key_(std::move(key)), on_lost_(std::move(on_lost)) {}

void EtcdCoordinatorKey::claim(const std::string& address, const std::string& replaced_address,
                               OnResult on_result) {
  timer_.cancel();
  current_ = std::make_shared<bool>(true);
  address_ = address;
  replaced_address_ = replaced_address;
  on_result_ = std::move(on_result);
  lease_ = 0;
  read();
}

void EtcdCoordinatorKey::find(OnResult on_result) {
  claim("", "", std::move(on_result));
}

void EtcdCoordinatorKey::read() {
  ask(etcd_read(key_), [this](const std::string& body) {
    const auto key = etcd_key(body);
    if (!key) return answer(ClaimResult::Outcome::refused, "it is not etcd: it answered " + etcd_error(body));
    if (address_.empty() && key->revision == 0)
      return answer(ClaimResult::Outcome::failed, "nobody hosts the job");
    const bool is_free = key->revision == 0 || key->value == address_ || key->value == replaced_address_;
    if (!is_free) return answer(ClaimResult::Outcome::held, key->value);
    grant(key->revision);
  });
}

void EtcdCoordinatorKey::grant(std::int64_t revision) {
  ask(etcd_grant(static_cast<int>(kLeaseTtl.count())), [this, revision](const std::string& body) {
    const auto lease = etcd_granted(body);
    if (!lease) return answer(ClaimResult::Outcome::failed, "it granted no lease: " + etcd_error(body));
    lease_ = *lease;
    write(revision);
  });
}

void EtcdCoordinatorKey::write(std::int64_t revision) {
  ask(etcd_write_if(key_, address_, lease_, revision), [this](const std::string& body) {
    const auto written = etcd_written(body);
    if (!written) return answer(ClaimResult::Outcome::failed, "it wrote no key: " + etcd_error(body));
    if (!*written) return read();
    keep_alive_later(kKeepAliveInterval);
    answer(ClaimResult::Outcome::acquired);
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
  post(etcd_keep_alive(lease_), [this](const EtcdReply& renewal) {
    if (is_transient(renewal.status)) return keep_alive_later(kRenewalRetry);
    if (renewal.status != kHttpOk || !etcd_kept_alive(renewal.body).value_or(false))
      return claim_again(address_, /*has_lapsed=*/true);
    post(etcd_read(key_), [this](const EtcdReply& read_reply) {
      if (is_transient(read_reply.status)) return keep_alive_later(kRenewalRetry);
      const auto key = etcd_key(read_reply.body);
      if (!key || key->lease != lease_) return claim_again(address_, /*has_lapsed=*/false);
      keep_alive_later(kKeepAliveInterval);
    });
  });
}

void EtcdCoordinatorKey::claim_again(const std::string& replaced_address, bool has_lapsed) {
  claim(address_, replaced_address, [this, replaced_address, has_lapsed](const ClaimResult& result) {
    if (result.outcome == ClaimResult::Outcome::acquired) return;
    if (result.outcome == ClaimResult::Outcome::held) {
      const Loss loss = on_lost_(result.text, has_lapsed);
      if (loss == Loss::take_back) claim_again(result.text, has_lapsed);
      if (loss != Loss::wait) return;
    }
    claim_later(replaced_address, has_lapsed);
  });
}

void EtcdCoordinatorKey::claim_later(const std::string& replaced_address, bool has_lapsed) {
  timer_.expires_after(kRenewalRetry);
  timer_.async_wait([this, replaced_address, has_lapsed,
                     current = std::weak_ptr<bool>(current_)](const boost::system::error_code& error) {
    if (!error && !current.expired()) claim_again(replaced_address, has_lapsed);
  });
}

void EtcdCoordinatorKey::release(std::function<void()> on_done) {
  timer_.cancel();
  current_ = std::make_shared<bool>(true);
  on_result_ = nullptr;
  on_released_ = std::move(on_done);
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
  if (const auto on_released = std::exchange(on_released_, nullptr)) on_released();
}

void EtcdCoordinatorKey::post(const EtcdRequest& request, EtcdGateway::Handler handler) {
  gateway_.post(request, [handler = std::move(handler),
                          current = std::weak_ptr<bool>(current_)](const EtcdReply& reply) {
    if (!current.expired()) handler(reply);
  });
}

void EtcdCoordinatorKey::ask(const EtcdRequest& request, OnBody on_body) {
  post(request, [this, on_body = std::move(on_body)](const EtcdReply& reply) {
    if (reply.status == kHttpOk) return on_body(reply.body);
    if (reply.status == 0) return answer(ClaimResult::Outcome::failed, reply.body);
    const std::string messages = fmt::format("{} ({})", etcd_error(reply.body), reply.status);
    const bool has_lapsed = reply.status == kNotFound && lease_ != 0;
    if (has_lapsed || is_transient(reply.status)) return answer(ClaimResult::Outcome::failed, messages);
    answer(ClaimResult::Outcome::refused, reply.status == kNotFound
                                              ? "it has no JSON gateway of etcd's API version 3: " + messages
                                              : "it refuses the request: " + messages);
  });
}

void EtcdCoordinatorKey::answer(ClaimResult::Outcome outcome, std::string text) {
  if (outcome != ClaimResult::Outcome::acquired) lease_ = 0;
  if (const OnResult on_result = std::exchange(on_result_, nullptr)) on_result({outcome, std::move(text)});
}

}  // namespace acc::launcher
