// SPDX-License-Identifier: Apache-2.0
#include "acc/launch/hang_watch.hpp"

#include <unistd.h>

#include <boost/asio/buffer.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/steady_timer.hpp>
#include <string>
#include <utility>

#include "acc/base/files.hpp"
#include "acc/control/process_table.hpp"
#include "acc/control/stacks.hpp"
#include "acc/launch/aside.hpp"
#include "acc/launch/channel.hpp"
#include "acc/launch/idle_clock.hpp"

namespace acc {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using Clock = std::chrono::steady_clock;

// What debuggers have not told by then is left out.
constexpr auto kMostLooking = std::chrono::seconds(60);

}  // namespace

struct HangWatch::Impl : std::enable_shared_from_this<HangWatch::Impl> {
  Impl(asio::io_context& loop, const HangPlan& hang, HangWatchParts of)
      : plan(hang),
        parts(std::move(of)),
        clock(hang.timeout, hang.cpu_counts),
        timer(loop),
        patience(loop),
        stacks(loop) {}

  void start() {
    clock.restart(Clock::now());
    wait();
  }

  void stop() {
    timer.cancel();
    patience.cancel();
    error_code ignored;
    stacks.close(ignored);
  }

  void wait() {
    timer.expires_after(clock.interval());
    timer.async_wait([self = weak_from_this()](error_code error) {
      const auto watch = self.lock();
      if (error || !watch) return;
      watch->look();
      watch->wait();
    });
  }

  void look() {
    const ProcessTable table = ProcessTable::read();
    std::vector<RankActivity> ranks;
    for (const RankView& rank : parts.job().ranks) {
      RankActivity& activity = ranks.emplace_back(RankActivity{.written = parts.written(rank.local_rank)});
      for (const ProcessStat* process : table.tree(rank.pid)) activity.cpu_time += process->cpu_time;
    }
    const auto now = Clock::now();
    if (clock.observe(ranks, now) && !stacks.is_open()) find_places(clock.idle(now));
  }

  // In a process of its own: a debugger takes seconds, and the job must not wait for it.
  void find_places(std::chrono::milliseconds idle) {
    hung = {.attempt = parts.job().attempt, .idle = idle};
    places.clear();
    Channel channel = make_pipe();
    stacks.assign(channel.ours.release());
    const StackOptions options{.environment = parts.environment};
    run_aside(std::move(channel.workers), [&](int to) {
      write_stacks(parts.job(), options, [&](std::string_view text) {
        if (!write_all(to, text)) ::_exit(1);
      });
    });
    asio::async_read(stacks, asio::dynamic_buffer(places),
                     [self = weak_from_this()](error_code error, std::size_t) {
                       const auto watch = self.lock();
                       if (!watch || !watch->stacks.is_open()) return;
                       if (error == asio::error::eof || error == asio::error::operation_aborted)
                         watch->tell();
                     });
    patience.expires_after(kMostLooking);
    patience.async_wait([self = weak_from_this()](error_code error) {
      const auto watch = self.lock();
      if (watch && !error) watch->stacks.cancel();
    });
  }

  void tell() {
    patience.cancel();
    stacks.close();
    hung.places = places;
    parts.tell(hung);
  }

  HangPlan plan;
  HangWatchParts parts;
  IdleClock clock;
  asio::steady_timer timer;
  asio::steady_timer patience;
  asio::posix::stream_descriptor stacks;
  std::string places = {};
  Hung hung = {};
};

HangWatch::HangWatch(asio::io_context& loop, const HangPlan& plan, HangWatchParts parts)
    : impl_(std::make_shared<Impl>(loop, plan, std::move(parts))) {}

HangWatch::~HangWatch() {
  impl_->stop();
}

void HangWatch::report(const Event& event) {
  if (impl_->plan.timeout.count() == 0) return;
  if (std::holds_alternative<AttemptStarted>(event)) impl_->start();
  const bool ends = std::holds_alternative<Stopping>(event) || std::holds_alternative<Restarting>(event) ||
                    std::holds_alternative<Finished>(event);
  if (ends) impl_->stop();
}

}  // namespace acc
