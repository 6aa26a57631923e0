// SPDX-License-Identifier: Apache-2.0
#include "acc/preflight/node_check.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <exception>
#include <utility>

#include "acc/base/error.hpp"
#include "acc/base/files.hpp"
#include "acc/base/machine.hpp"
#include "acc/base/running_clock.hpp"
#include "acc/base/subprocess/command.hpp"
#include "acc/preflight/node_json.hpp"
#include "acc/store/client.hpp"

namespace acc::launcher {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

NodeCheckResult failed(const std::string& why) {
  return {.passed = false,
          .clean = false,
          .summary = fmt::format("the preflight failed: {}: {}", host_name(), why)};
}

}  // namespace

std::string encode(const NodeCheckResult& result) {
  return to_text({{"passed", result.passed},
                  {"clean", result.clean},
                  {"summary", result.summary},
                  {"text", result.text},
                  {"json", result.json}});
}

NodeCheckResult decode_result(std::string_view text) {
  const Json object = Json::parse(text);
  return {.passed = object.at("passed"),
          .clean = object.at("clean"),
          .summary = object.at("summary"),
          .text = object.at("text"),
          .json = object.at("json")};
}

NodeCheckResult run_node_check(const NodeCheckJob& job, const ExchangeLimits& limits) {
  const auto began = std::chrono::steady_clock::now();
  NodeHealth own = probe_self(job, limits.self);
  if (job.round.num_machines == 1)
    return check_alone(std::move(own), std::chrono::steady_clock::now() - began);
  if (!job.round.use_agent_store) return failed("no agent serves the store of this job");
  asio::io_context loop(1);
  StoreClient store(loop);
  NodeCheckResult result = failed("the store of the job did not answer");
  store.connect(
      {job.round.master_addr, job.round.master_port}, RunningClock::now() + limits.step,
      [](const std::string&) {},
      [&](std::optional<Error> error) {
        if (error) {
          result = failed(error->what());
          return loop.stop();
        }
        const auto done = [&](const std::exception_ptr& thrown, NodeCheckResult found) {
          result = thrown ? failed("another node sent something else than acc does") : std::move(found);
          loop.stop();
        };
        asio::co_spawn(loop, check_together(loop, store, job, std::move(own), limits, began), done);
      });
  loop.run();
  return result;
}

struct NodeCheck::Impl : std::enable_shared_from_this<NodeCheck::Impl> {
  explicit Impl(asio::io_context& loop) : pipe(loop), timeout(loop) {}

  void start(const NodeCheckJob& job, Done handler) {
    stop();
    done = std::move(handler);
    received.clear();
    std::array<int, 2> ends = {};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) return finish_later("no descriptors are left");
    pipe.assign(ends[0]);
    const bool started = run_in_child(Descriptor(ends[1]), [&](int to) {
      if (!write_all(to, encode(run_node_check(job)))) ::_exit(1);
    });
    if (!started) return finish_later("no process is left");
    // Longer than the limits of all its steps together.
    constexpr auto kLimit = std::chrono::seconds(180);
    timeout.expires_after(kLimit);
    timeout.async_wait([self = weak_from_this()](error_code error) {
      const auto check = self.lock();
      if (check && !error) check->finish(failed("its checks did not end within 3 minutes"));
    });
    read();
  }

  void stop() {
    done = nullptr;
    timeout.cancel();
    error_code ignored;
    pipe.close(ignored);
  }

  void read() {
    pipe.async_read_some(asio::buffer(buffer), [self = weak_from_this()](error_code error, std::size_t size) {
      const auto check = self.lock();
      if (!check || !check->done) return;
      check->received.append(check->buffer.data(), size);
      if (!error) return check->read();
      check->finish_with_received();
    });
  }

  void finish_with_received() try {
    finish(decode_result(received));
  } catch (const nlohmann::json::exception&) {
    finish(failed("its checks ended without a result"));
  }

  void finish_later(const char* why) {
    asio::post(timeout.get_executor(), [self = weak_from_this(), why] {
      if (const auto check = self.lock()) check->finish(failed(why));
    });
  }

  void finish(NodeCheckResult result) {
    const Done handler = std::move(done);
    stop();
    if (handler) handler(std::move(result));
  }

  asio::posix::stream_descriptor pipe;
  asio::steady_timer timeout;
  std::array<char, std::size_t{16} << 10U> buffer = {};
  std::string received = {};
  Done done = {};
};

NodeCheck::NodeCheck(asio::io_context& loop) : impl_(std::make_shared<Impl>(loop)) {}

NodeCheck::~NodeCheck() {
  impl_->stop();
}

void NodeCheck::start(const NodeCheckJob& job, Done done) {
  impl_->start(job, std::move(done));
}

}  // namespace acc::launcher
