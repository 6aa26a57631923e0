// SPDX-License-Identifier: Apache-2.0
#include "acc/store/resolver.hpp"

#include <map>
#include <mutex>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "acc/base/detached_thread.hpp"
#include "acc/store/network.hpp"

namespace acc::launcher {

struct Resolver::Waiter {
  // Null once it is cancelled.
  net::io_context* loop = nullptr;
  Done done = {};
  // Keeps the loop running.
  std::optional<net::executor_work_guard<net::io_context::executor_type>> work = {};

  // Reached in the loop's thread.
  static void finish(const std::shared_ptr<Waiter>& self, HostLookup lookup) {
    net::post(*self->loop, [self, lookup = std::move(lookup)] {
      if (self->loop == nullptr) return;
      self->work.reset();
      std::exchange(self->done, {})(lookup);
    });
  }
};

namespace {

// Those who wait for a name, and the lock of all of them. Generic, since Waiter is private.
template <typename Waiter>
struct Lookups {
  std::mutex mutex = {};
  std::map<std::string, std::vector<std::shared_ptr<Waiter>>> waiting = {};

  // Is never destroyed: threads that stay behind use it while the process ends.
  static Lookups& of_process() {
    static auto& lookups = *new Lookups;
    return lookups;
  }

  void finish(const std::string& host, const HostLookup& lookup) {
    const std::lock_guard lock(mutex);
    const auto waiters = waiting.extract(host);
    for (const auto& waiter : waiters.mapped())
      if (waiter->loop != nullptr) Waiter::finish(waiter, lookup);
  }
};

}  // namespace

Resolver::Resolver(net::io_context& loop, LookUp look_up) : loop_(loop), look_up_(std::move(look_up)) {}

Resolver::~Resolver() {
  cancel();
}

void Resolver::resolve(const std::string& host, Done done) {
  cancel();
  waiter_ = std::make_shared<Waiter>(
      Waiter{.loop = &loop_, .done = std::move(done), .work = net::make_work_guard(loop_)});
  boost::system::error_code is_name;
  net::ip::make_address(host, is_name);
  if (!is_name) return Waiter::finish(waiter_, {.addresses = {host}});

  auto& lookups = Lookups<Waiter>::of_process();
  {
    const std::lock_guard lock(lookups.mutex);
    const auto [lookup, is_new] = lookups.waiting.try_emplace(host);
    std::erase_if(lookup->second, [](const auto& waiter) { return waiter->loop == nullptr; });
    lookup->second.push_back(waiter_);
    if (!is_new) return;
  }
  try {
    start_detached([host, look_up = look_up_] {
      const HostLookup found = look_up(host);
      Lookups<Waiter>::of_process().finish(host, found);
    });
  } catch (const std::system_error& error) {
    lookups.finish(host, {.error = error.code().message()});
  }
}

void Resolver::cancel() {
  if (!waiter_) return;
  {
    const std::lock_guard lock(Lookups<Waiter>::of_process().mutex);
    waiter_->loop = nullptr;
  }
  waiter_->done = {};
  waiter_->work.reset();
  waiter_.reset();
}

}  // namespace acc::launcher
