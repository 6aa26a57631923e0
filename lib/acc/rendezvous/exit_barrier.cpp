// SPDX-License-Identifier: Apache-2.0
#include "acc/rendezvous/exit_barrier.hpp"

#include <utility>

namespace acc::launcher {
namespace {

constexpr const char* kMembers = "torchelastic/agent/terminal_state/num_members";
constexpr const char* kLast = "torchelastic/agent/terminal_state/last_member";

}  // namespace

ExitBarrier::ExitBarrier(const Store& store, Options options, std::function<void(bool)> done)
    : options_(std::move(options)),
      done_(std::move(done)),
      store_(store.open_again(std::chrono::steady_clock::now() + options_.timeout, [this](const auto& error) {
        if (error) return finish(false);
        connected();
      })) {}

void ExitBarrier::connected() {
  store_->add(options_.prefix + kMembers, options_.own, [this](StoreOutcome outcome, std::int64_t members) {
    if (outcome != StoreOutcome::done) return finish(false);
    if (members == options_.group_size) store_->set(options_.prefix + kLast, "<val_ignored>");
    store_->wait({options_.prefix + kLast}, options_.timeout,
                 [this](StoreOutcome ended) { finish(ended == StoreOutcome::done); });
  });
}

void ExitBarrier::finish(bool all) {
  const auto done = std::exchange(done_, {});
  if (done) done(all);
}

}  // namespace acc::launcher
