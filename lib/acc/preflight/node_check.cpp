// SPDX-License-Identifier: Apache-2.0
#include "acc/preflight/node_check.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <boost/asio/co_spawn.hpp>
#include <exception>
#include <utility>

#include "acc/base/error.hpp"
#include "acc/base/files.hpp"
#include "acc/base/machine.hpp"
#include "acc/base/printable.hpp"
#include "acc/base/running_clock.hpp"
#include "acc/preflight/node_json.hpp"
#include "acc/store/client.hpp"

namespace acc::launcher {
namespace {

namespace asio = boost::asio;

NodeCheckResult failed(const std::string& reason) {
  return {.passed = false,
          .clean = false,
          .summary = fmt::format("the preflight failed: {}: {}", host_name(), reason)};
}

NodeCheckResult received_result(const std::string& text) try {
  return decode_result(text);
} catch (const nlohmann::json::exception&) {
  return failed("its checks ended without a result");
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
          .summary = printable(object.at("summary").get<std::string>()),
          .text = printable(object.at("text").get<std::string>()),
          .json = object.at("json")};
}

NodeCheckResult run_node_check(const NodeCheckJob& job, const ExchangeLimits& limits) {
  const auto began = std::chrono::steady_clock::now();
  NodeHealth health = probe_self(job, limits.self);
  if (job.round.num_machines == 1)
    return check_alone(std::move(health), std::chrono::steady_clock::now() - began);
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
        const auto completion = [&](const std::exception_ptr& thrown, NodeCheckResult outcome) {
          result = thrown ? failed("another node sent something else than acc does") : std::move(outcome);
          loop.stop();
        };
        asio::co_spawn(loop, check_together(loop, store, job, std::move(health), limits, began), completion);
      });
  loop.run();
  return result;
}

NodeCheck::NodeCheck(asio::io_context& loop) : answer_(loop) {}

void NodeCheck::start(const NodeCheckJob& job, Done done) {
  // Longer than the limits of all its steps together.
  constexpr auto kLimit = std::chrono::seconds(180);
  const auto check = [&](int to) {
    if (!write_all(to, encode(run_node_check(job)))) ::_exit(1);
  };
  answer_.ask(check, kLimit, [done = std::move(done)](const ChildAnswer::Answer& answer) {
    done(answer.problem.empty() ? received_result(answer.text) : failed(answer.problem));
  });
}

}  // namespace acc::launcher
