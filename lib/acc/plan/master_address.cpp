// SPDX-License-Identifier: Apache-2.0
#include "acc/plan/master_address.hpp"

#include <fmt/format.h>

#include "acc/base/text.hpp"

namespace acc::launcher {
namespace {

constexpr const char* kLoopback = "127.0.0.1";

std::string is_elsewhere(const std::string& host, const HostLookup& found) {
  if (found.addresses.empty()) return fmt::format("'{}' cannot be resolved: {}", host, found.error);
  const std::string addresses = join(found.addresses, ", ");
  if (addresses == host) return fmt::format("'{}' is not an address of this machine", host);
  return fmt::format("'{}' is {}, which is not an address of this machine", host, addresses);
}

}  // namespace

void plan_master_address(const NamedAddress& named, const LaunchInputs& inputs, LaunchPlan& plan) {
  plan.master_addr = named.host;
  const HostLookup found = inputs.look_up(named.host);
  const OwnNames own = inputs.own_names();
  plan.store_addresses = own_among(found.addresses, own);
  if (!plan.store_addresses.empty()) return;
  plan.store_addresses = {kLoopback};
  // A machine without /etc/hosts.
  if (named.host == "localhost") return;
  const std::string what = is_elsewhere(named.host, found);
  if (named.binding) {
    plan.problems.push_back(
        {.what = what,
         .where = named.origin,
         .hint = fmt::format("a job of one machine needs none; its own are {}; for several machines --nnodes",
                             join(addresses_for_others(own), ", "))});
    return;
  }
  plan.master_addr = kLoopback;
  plan.notes.push_back(
      fmt::format("{}: {}: a job of one machine meets at {}", named.origin, what, kLoopback));
}

}  // namespace acc::launcher
