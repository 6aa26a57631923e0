// SPDX-License-Identifier: Apache-2.0
#include "acc/store/resolver.hpp"

#include <map>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
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

  // `done` is called in the loop's thread, once `thread` has ended: the process may fork then.
  static void finish(const std::shared_ptr<Waiter>& self, HostLookup lookup,
                     std::shared_ptr<std::thread> thread = {}) {
    net::post(*self->loop, [self, lookup = std::move(lookup), thread = std::move(thread)] {
      if (thread) thread->join();
      if (self->loop == nullptr) return;
      self->work.reset();
      std::exchange(self->done, {})(lookup);
    });
  }
};

namespace {

/// A thread that is left behind when nobody waits for its end.
std::shared_ptr<std::thread> shared_thread(std::thread thread) {
  const auto leave = [](std::thread* owned) {
    if (owned->joinable()) owned->detach();
    delete owned;
  };
  return {new std::thread(std::move(thread)), leave};
}

// The lookups of this process, by name. Generic, since Waiter is private.
template <typename Waiter>
struct Lookups {
  struct Lookup {
    std::vector<std::shared_ptr<Waiter>> waiters = {};
    std::shared_ptr<std::thread> thread = {};
  };
  std::mutex mutex = {};
  std::map<std::string, Lookup> running = {};

  // Is never destroyed: threads that stay behind use it while the process ends.
  static Lookups& of_process() {
    static auto& lookups = *new Lookups;
    return lookups;
  }

  // Called by the lookup's thread, which the first waiter joins.
  void finish(const std::string& host, const HostLookup& result) {
    const std::lock_guard lock(mutex);
    auto lookup = running.extract(host);
    for (const auto& waiter : lookup.mapped().waiters)
      if (waiter->loop != nullptr) Waiter::finish(waiter, result, std::move(lookup.mapped().thread));
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
  const std::lock_guard lock(lookups.mutex);
  auto& lookup = lookups.running[host];
  std::erase_if(lookup.waiters, [](const auto& waiter) { return waiter->loop == nullptr; });
  lookup.waiters.push_back(waiter_);
  if (lookup.thread) return;
  try {
    lookup.thread = shared_thread(start_thread([host, look_up = look_up_] {
      const HostLookup result = look_up(host);
      Lookups<Waiter>::of_process().finish(host, result);
    }));
  } catch (const std::system_error& error) {
    lookups.running.erase(host);
    Waiter::finish(waiter_, {.error = error.code().message()});
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
