// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "acc/preflight/kernel_log.hpp"

namespace acc::launcher {

/// How nlohmann's JSON, ordered or not, has an Xid.
template <typename AnyJson>
void to_json(AnyJson& json, const Xid& xid) {
  json = {{"number", xid.number}, {"pci_address", xid.pci_address}};
}

template <typename AnyJson>
void from_json(const AnyJson& json, Xid& xid) {
  json.at("number").get_to(xid.number);
  json.at("pci_address").get_to(xid.pci_address);
}

}  // namespace acc::launcher
