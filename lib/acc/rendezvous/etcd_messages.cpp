// SPDX-License-Identifier: Apache-2.0
#include "acc/rendezvous/etcd_messages.hpp"

#include <nlohmann/json.hpp>

#include "acc/base/text.hpp"
#include "acc/rendezvous/base64.hpp"

namespace acc::launcher {
namespace {

using Json = nlohmann::json;

EtcdRequest request(std::string path, const Json& body) {
  return {.path = std::move(path), .body = body.dump()};
}

std::optional<Json> object(std::string_view body) {
  Json json = Json::parse(body, nullptr, false);
  if (!json.is_object()) return std::nullopt;
  return json;
}

// The gateway's JSON has 64-bit numbers as strings, and leaves out zeros.
std::int64_t number(const Json& json, const char* name) {
  const auto field = json.find(name);
  if (field == json.end()) return 0;
  if (field->is_number_integer()) return field->get<std::int64_t>();
  return field->is_string() ? parse_integer(field->get<std::string>()).value_or(0) : 0;
}

// Absent fields are empty: servers put an error into `error`, `message` or both.
std::string text(const Json& json, const char* name) {
  const auto field = json.find(name);
  return field != json.end() && field->is_string() ? field->get<std::string>() : std::string();
}

}  // namespace

EtcdRequest etcd_grant(int ttl_seconds) {
  return request("/v3/lease/grant", {{"TTL", ttl_seconds}});
}

EtcdRequest etcd_keep_alive(std::int64_t lease) {
  return request("/v3/lease/keepalive", {{"ID", std::to_string(lease)}});
}

EtcdRequest etcd_revoke(std::int64_t lease) {
  return request("/v3/lease/revoke", {{"ID", std::to_string(lease)}});
}

EtcdRequest etcd_read(std::string_view key) {
  return request("/v3/kv/range", {{"key", to_base64(key)}});
}

EtcdRequest etcd_write_if(std::string_view key, std::string_view value, std::int64_t lease,
                          std::int64_t revision) {
  const std::string name = to_base64(key);
  const Json unchanged = {
      {"key", name}, {"target", "MOD"}, {"result", "EQUAL"}, {"mod_revision", std::to_string(revision)}};
  const Json put = {{"key", name}, {"value", to_base64(value)}, {"lease", std::to_string(lease)}};
  return request("/v3/kv/txn",
                 {{"compare", Json::array({unchanged})}, {"success", Json::array({{{"request_put", put}}})}});
}

std::optional<std::int64_t> etcd_granted(std::string_view body) {
  const auto json = object(body);
  if (!json) return std::nullopt;
  const std::int64_t lease = number(*json, "ID");
  return lease == 0 ? std::nullopt : std::optional(lease);
}

std::optional<bool> etcd_kept_alive(std::string_view body) {
  const auto json = object(body);
  if (!json || !json->contains("result") || !json->at("result").is_object()) return std::nullopt;
  return number(json->at("result"), "TTL") > 0;
}

std::optional<EtcdKey> etcd_key(std::string_view body) {
  const auto json = object(body);
  if (!json || !json->contains("header")) return std::nullopt;
  const auto keys = json->find("kvs");
  if (keys == json->end()) return EtcdKey{};
  if (!keys->is_array() || keys->size() != 1 || !keys->front().is_object()) return std::nullopt;
  const Json& entry = keys->front();
  auto value = from_base64(text(entry, "value"));
  if (!value) return std::nullopt;
  return EtcdKey{
      .value = std::move(*value), .revision = number(entry, "mod_revision"), .lease = number(entry, "lease")};
}

std::optional<bool> etcd_written(std::string_view body) {
  const auto json = object(body);
  if (!json || !json->contains("header")) return std::nullopt;
  const auto field = json->find("succeeded");
  return field != json->end() && field->is_boolean() && field->get<bool>();
}

std::string etcd_error(std::string_view body) {
  constexpr std::size_t kMaxShown = 200;
  if (const auto json = object(body)) {
    for (const char* name : {"message", "error"}) {
      if (std::string messages = text(*json, name); !messages.empty()) return messages;
    }
  }
  return std::string(trim(body.substr(0, kMaxShown)));
}

}  // namespace acc::launcher
