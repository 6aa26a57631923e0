// SPDX-License-Identifier: Apache-2.0
// --rdzv-conf and --rdzv-endpoint, which scripts and engines put together: applied, or refused with all that
// is wrong.
#include "acc/plan/flag_grammars.hpp"
#include "acc/plan/rendezvous.hpp"
#include "fuzz/promise.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using acc::launcher::RendezvousKind;
  const std::string_view text = fuzz::text_of(data, size);
  for (const auto kind : {RendezvousKind::static_, RendezvousKind::c10d, RendezvousKind::etcd}) {
    fuzz::value_or_error([&] {
      acc::launcher::RendezvousPlan plan = {.backend = kind};
      std::vector<std::string> notes;
      apply_rdzv_conf(text, "--rdzv-conf", plan, notes);
      fuzz::require(plan.join_timeout.count() > 0 && plan.read_timeout.count() > 0, "times are positive",
                    text);
      fuzz::require(plan.keep_alive_max_attempt > 0, "a node is not lost at once", text);
      return plan;
    });
  }
  const auto endpoint =
      fuzz::value_or_error([&] { return acc::launcher::parse_endpoint(text, "--rdzv-endpoint"); });
  fuzz::require(!endpoint || !endpoint->host.empty() || endpoint->port, "an endpoint says something", text);
  return 0;
}
