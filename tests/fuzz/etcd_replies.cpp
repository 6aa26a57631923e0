// SPDX-License-Identifier: Apache-2.0
// What etcd's gateway answers, or what stands in its place: a reply of a kind, or none. A value that was read
// can be written.
#include "acc/rendezvous/base64.hpp"
#include "acc/rendezvous/etcd_messages.hpp"
#include "fuzz/promise.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view body = fuzz::text_of(data, size);
  const auto lease = acc::launcher::etcd_granted(body);
  fuzz::require(lease != 0, "a lease has a number");
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
