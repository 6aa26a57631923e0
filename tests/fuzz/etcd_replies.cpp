// SPDX-License-Identifier: Apache-2.0
// What etcd's gateway answers, or something else at its address: a reply of a kind, or none. A value that was
// read can be written, a lease that was granted be kept and ended, and any text be a key.
#include <nlohmann/json.hpp>

#include "acc/rendezvous/base64.hpp"
#include "acc/rendezvous/etcd_messages.hpp"
#include "fuzz/promise.hpp"

namespace {

using acc::launcher::EtcdRequest;

nlohmann::json content_of(const EtcdRequest& request) {
  return nlohmann::json::parse(request.body);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view body = fuzz::text_of(data, size);
  const auto lease = acc::launcher::etcd_granted(body);
  fuzz::require(lease != 0, "a lease has a number");
  if (lease) {
    const std::string number = std::to_string(*lease);
    for (const EtcdRequest& request :
         {acc::launcher::etcd_keep_alive(*lease), acc::launcher::etcd_revoke(*lease)})
      fuzz::require(content_of(request).at("ID") == number, "a lease is kept and ended by its number");
  }
  fuzz::require(content_of(acc::launcher::etcd_grant(static_cast<int>(size))).at("TTL") == size,
                "a lease lasts as long as was asked");
  const std::string name = content_of(acc::launcher::etcd_read(body)).at("key");
  fuzz::require(acc::launcher::from_base64(name) == body, "a key is read by its name");
  acc::launcher::etcd_kept_alive(body);
  acc::launcher::etcd_written(body);
  acc::launcher::etcd_error(body);
  if (const auto key = acc::launcher::etcd_key(body))
    acc::launcher::etcd_write_if("key", key->value, key->lease, key->revision);
  const auto bytes = acc::launcher::from_base64(body);
  fuzz::require(!bytes || acc::launcher::to_base64(*bytes) == body, "base64 has one form", body);
  fuzz::require(acc::launcher::from_base64(acc::launcher::to_base64(body)) == body, "base64 loses nothing");
  return 0;
}
