// SPDX-License-Identifier: Apache-2.0
// --rdzv-conf, --rdzv-endpoint, and other flags that are lists, which scripts and engines put together:
// applied, or refused with all that is wrong.
#include <algorithm>

#include "acc/plan/flag_grammars.hpp"
#include "acc/plan/rendezvous.hpp"
#include "fuzz/promise.hpp"

namespace {

void check_lists(std::string_view text) {
  const std::string where = "--flag";
  fuzz::value_or_error([&] { return acc::launcher::parse_stream_map(text, where); });
  const auto ranks = fuzz::value_or_error([&] { return acc::launcher::parse_ranks(text, where); });
  fuzz::require(!ranks || std::ranges::all_of(*ranks, [](int rank) { return rank >= 0; }),
                "ranks are not negative", text);
  const auto signals = fuzz::value_or_error([&] { return acc::launcher::parse_signals(text, where); });
  fuzz::require(!signals || std::ranges::all_of(*signals, [](int signal) { return signal > 0; }),
                "a signal has a number", text);
  const auto failures = fuzz::value_or_error([&] { return acc::launcher::parse_retry_on(text, where); });
  fuzz::require(!failures || failures->all || failures->included != acc::launcher::FailureKinds{},
                "some failure is retried", text);
  for (const std::string& word : acc::launcher::parse_words(text))
    fuzz::require(!word.empty() && word.size() <= text.size(), "a word is one of the text", text);
}

}  // namespace

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
  check_lists(text);
  return 0;
}
