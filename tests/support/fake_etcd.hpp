// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "acc/rendezvous/base64.hpp"
#include "acc/rendezvous/etcd_messages.hpp"

namespace acc::test {

using namespace launcher;

/// The part of an etcd server of API version 3 that acc uses. Leases expire when the test says so.
class FakeEtcd {
 public:
  using Json = nlohmann::json;

  EtcdReply answer(const EtcdRequest& request) {
    asked.push_back(request.path);
    if (failure.status != 200) return failure;
    const Json body = Json::parse(request.body);
    if (request.path == "/v3/lease/grant") {
      leases_[++last_lease_] = true;
      if (on_alive) on_alive(last_lease_);
      return good({{"ID", std::to_string(last_lease_)}, {"TTL", std::to_string(body.at("TTL").get<int>())}});
    }
    if (request.path == "/v3/lease/keepalive") {
      Json result = {{"ID", body.at("ID")}};
      if (leases_[id(body)]) result["TTL"] = "5";
      if (leases_[id(body)] && on_alive) on_alive(id(body));
      return {200, Json{{"result", result}}.dump()};
    }
    if (request.path == "/v3/lease/revoke") {
      expire(id(body));
      return good(Json::object());
    }
    if (request.path == "/v3/kv/range") return read(body);
    if (request.path == "/v3/kv/txn") return write(body);
    return {404, "Not Found"};
  }

  /// Expires a lease, as after the death of a host.
  void expire(std::int64_t lease) {
    leases_[lease] = false;
    std::erase_if(keys_, [&](const auto& entry) { return entry.second.lease == lease; });
  }
  void expire_leases() {
    for (const std::int64_t lease : leases()) expire(lease);
  }
  /// Those that live.
  std::vector<std::int64_t> leases() const {
    std::vector<std::int64_t> living;
    for (const auto& [lease, lives] : leases_)
      if (lives) living.push_back(lease);
    return living;
  }
  bool has(const std::string& key) const { return keys_.contains(key); }
  std::string value(const std::string& key) const { return has(key) ? keys_.at(key).value : ""; }
  /// Writes as another client.
  void set(const std::string& key, const std::string& value) { keys_[key] = {value, ++revision_, 0}; }
  void remove(const std::string& key) { keys_.erase(key); }
  int times_asked(const std::string& path) const {
    return static_cast<int>(std::count(asked.begin(), asked.end(), path));
  }

  /// A lease has been granted, or kept alive: its time begins.
  std::function<void(std::int64_t lease)> on_alive = {};
  std::vector<std::string> asked = {};
  /// If not 200, the status of every reply.
  EtcdReply failure = {.status = 200};

 private:
  static std::int64_t id(const Json& body) { return std::stoll(body.at("ID").get<std::string>()); }
  static std::string key_of(const Json& body) {
    return from_base64(body.at("key").get<std::string>()).value_or("");
  }
  static EtcdReply good(Json json) {
    json["header"] = Json::object();
    return {200, json.dump()};
  }

  EtcdReply read(const Json& body) const {
    const auto entry = keys_.find(key_of(body));
    if (entry == keys_.end()) return good(Json::object());
    const Json one = {{"key", body.at("key")},
                      {"value", to_base64(entry->second.value)},
                      {"mod_revision", std::to_string(entry->second.revision)},
                      {"lease", std::to_string(entry->second.lease)}};
    return good({{"kvs", Json::array({one})}});
  }

  EtcdReply write(const Json& body) {
    const Json& unchanged = body.at("compare").at(0);
    const Json& put = body.at("success").at(0).at("request_put");
    const auto entry = keys_.find(key_of(put));
    const std::int64_t revision = entry == keys_.end() ? 0 : entry->second.revision;
    if (std::to_string(revision) != unchanged.at("mod_revision")) return good(Json::object());
    const std::int64_t lease = std::stoll(put.at("lease").get<std::string>());
    if (!leases_[lease]) return {404, R"({"message":"etcdserver: requested lease not found"})"};
    keys_[key_of(put)] = {from_base64(put.at("value").get<std::string>()).value_or(""), ++revision_, lease};
    return good({{"succeeded", true}});
  }

  std::map<std::string, EtcdKey> keys_ = {};
  std::map<std::int64_t, bool> leases_ = {};
  std::int64_t last_lease_ = 0;
  std::int64_t revision_ = 0;
};

}  // namespace acc::test
